// A client built on an official TypeScript SDK, worked through stdin and stdout: one JSON order a line in, one JSON
// answer a line out. What is right or wrong is decided by the harness; this file only carries what the SDK delivers.
//
// Usage: node typescript.cjs client|sdk, with THIRD_PARTY naming the folder that holds node_modules.
'use strict';
const { createRequire } = require('node:module');
const path = require('node:path');
const readline = require('node:readline');

const sdk = process.argv[2];
const thirdParty = createRequire(path.join(process.env.THIRD_PARTY, 'package.json'));
const identity = { name: `e2e-${sdk}`, version: '1.0.0' };

// `mode` is legacy, auto or a pinned version; the older SDK knows the handshake only.
function open(url, mode, init) {
  if (sdk === 'client') {
    const { Client, StreamableHTTPClientTransport } = thirdParty('@modelcontextprotocol/client');
    const negotiation = mode === 'auto' ? mode : { pin: mode };
    const client = new Client(identity, mode === 'legacy' ? {} : { versionNegotiation: { mode: negotiation } });
    return { client, transport: new StreamableHTTPClientTransport(new URL(url), init) };
  }
  const { Client } = thirdParty('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = thirdParty('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return { client: new Client(identity), transport: new StreamableHTTPClientTransport(new URL(url), init) };
}

const clients = new Map();
let lastResponse = {};

// The SDKs do not all tell the HTTP status of a failure, so it is noted on the way.
async function noted(input, init) {
  const response = await fetch(input, init);
  lastResponse = { status: response.status, challenge: response.headers.get('www-authenticate') };
  return response;
}

const orders = {
  async connect({ as, url, token, mode }) {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const { client, transport } = open(url, mode, { requestInit: { headers }, fetch: noted });
    await client.connect(transport);
    clients.set(as, client);
    return {
      protocolVersion: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
      serverInfo: client.getServerVersion(),
      instructions: client.getInstructions(),
    };
  },
  async list({ as }) {
    const tools = [];
    let cursor;
    do {
      const page = await clients.get(as).listTools(cursor === undefined ? undefined : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  },
  async call({ as, name, arguments: args }) {
    return clients.get(as).callTool({ name, arguments: args });
  },
};

function described(error) {
  const causes = [];
  for (let at = error; at instanceof Error; at = at.cause) {
    causes.push(`${at.name}: ${at.message}`);
  }
  return { message: causes.join(' <- ') || String(error), code: error?.code, ...lastResponse };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let answer;
    lastResponse = {};
    try {
      answer = { ok: await orders[order.order](order) };
    } catch (error) {
      answer = { error: described(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await Promise.allSettled([...clients.values()].map((client) => client.close()));
  process.exit(0);
}

main();
