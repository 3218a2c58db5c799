// The official TypeScript SDK with its OAuth client, worked through stdin and stdout: one JSON order a line in, one JSON
// answer a line out. It is given no token; whatever it needs it gets by logging in, and the one who clicks is this file.
//
// Usage: node login.cjs, with THIRD_PARTY naming the folder that holds node_modules.
'use strict';
const { createRequire } = require('node:module');
const { randomUUID } = require('node:crypto');
const path = require('node:path');
const readline = require('node:readline');

const thirdParty = createRequire(path.join(process.env.THIRD_PARTY, 'package.json'));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = thirdParty('@modelcontextprotocol/client');

const redirectUrl = 'http://127.0.0.1:1/callback';
const connections = new Map();

// Tokens and registration, for as long as the connection lives.
class Provider {
  redirectUrl = redirectUrl;
  clientMetadata = {
    client_name: 'e2e',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  kept = {};
  // `clientId` and `clientSecret` where a person registered the client, `clientMetadataUrl` where it is known by a document.
  constructor({ clientId, clientSecret, clientMetadataUrl }) {
    if (clientId !== undefined) {
      this.kept.client = { client_id: clientId, client_secret: clientSecret };
      this.clientMetadata.token_endpoint_auth_method = 'client_secret_basic';
    }
    this.clientMetadataUrl = clientMetadataUrl;
  }
  state() {
    return (this.kept.state = randomUUID());
  }
  clientInformation() {
    return this.kept.client;
  }
  saveClientInformation(client) {
    this.kept.client = client;
  }
  tokens() {
    return this.kept.tokens;
  }
  saveTokens(tokens) {
    this.kept.tokens = tokens;
  }
  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier;
  }
  codeVerifier() {
    return this.kept.verifier;
  }
  saveDiscoveryState(discovered) {
    this.kept.discovered = discovered;
  }
  discoveryState() {
    return this.kept.discovered;
  }
  async redirectToAuthorization(url) {
    const response = await fetch(url, { redirect: 'manual' });
    const location = response.headers.get('location');
    if (location === null) {
      throw new Error(`no redirect: ${response.status} ${await response.text()}`);
    }
    this.cameBack = new URL(location).searchParams;
    if (this.cameBack.get('state') !== this.kept.state) {
      throw new Error(`another state came back: ${location}`);
    }
  }
}

// The SDK stops where a browser would open. With the code that came back, the caller tries again, as often as it is told to.
async function throughLogin(connection, attempt, logins = 1) {
  for (; ; logins--) {
    try {
      return await attempt();
    } catch (error) {
      const { provider, transport } = connection;
      const { cameBack } = provider;
      if (!(error instanceof UnauthorizedError) || cameBack === undefined || logins === 0) {
        throw error;
      }
      provider.cameBack = undefined;
      await transport.finishAuth(cameBack);
      // The next challenge may lead to another authorization server.
      provider.kept.discovered = undefined;
    }
  }
}

const orders = {
  async connect({ as, url, mode, logins, ...known }) {
    const connection = { provider: new Provider(known) };
    await throughLogin(connection, async () => {
      // A transport that was refused cannot be started again.
      connection.transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: connection.provider });
      connection.client = new Client(
        { name: 'e2e-login', version: '1.0.0' },
        mode === 'legacy' ? {} : { versionNegotiation: { mode: mode === 'auto' ? mode : { pin: mode } } },
      );
      await connection.client.connect(connection.transport);
    }, logins);
    connections.set(as, connection);
    return { protocolVersion: connection.client.getNegotiatedProtocolVersion() };
  },
  async call({ as, name, arguments: args }) {
    const connection = connections.get(as);
    return throughLogin(connection, () => connection.client.callTool({ name, arguments: args }));
  },
};

function described(error) {
  const causes = [];
  for (let at = error; at instanceof Error; at = at.cause) {
    causes.push(`${at.name}: ${at.message}`);
  }
  return { message: causes.join(' <- ') || String(error) };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let answer;
    try {
      answer = { ok: await orders[order.order](order) };
    } catch (error) {
      answer = { error: described(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await Promise.allSettled([...connections.values()].map(({ client }) => client.close()));
  process.exit(0);
}

main();
