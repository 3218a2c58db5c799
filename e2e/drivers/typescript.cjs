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

// `mode` is legacy, auto or a pinned version; the older SDK knows the handshake only, and no multi-round calls.
function open({ url, mode, answer = {} }, init, notes) {
  if (sdk === 'client') {
    const { Client, StreamableHTTPClientTransport } = thirdParty('@modelcontextprotocol/client');
    const negotiation = mode === 'auto' ? mode : { pin: mode };
    const client = new Client(identity, {
      capabilities: { elicitation: {} },
      ...(mode === 'legacy' ? {} : { versionNegotiation: { mode: negotiation } }),
    });
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      notes.questions.push(params.message);
      return { action: 'accept', content: answer };
    });
    client.setNotificationHandler('notifications/message', ({ params }) => notes.logs.push(logged(params)));
    const call = (params, options) => client.callTool(params, options);
    return { client, call, transport: new StreamableHTTPClientTransport(new URL(url), init) };
  }
  const { Client } = thirdParty('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = thirdParty('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { LoggingMessageNotificationSchema } = thirdParty('@modelcontextprotocol/sdk/types.js');
  const client = new Client(identity);
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => notes.logs.push(logged(params)));
  const call = (params, options) => client.callTool(params, undefined, options);
  return { client, call, transport: new StreamableHTTPClientTransport(new URL(url), init) };
}

const logged = ({ level, data }) => ({ level, data });
const none = () => ({ progress: [], logs: [], questions: [] });

const connections = new Map();
let lastResponse = {};

// The SDKs do not all tell the HTTP status of a failure, so it is noted on the way.
async function noted(input, init) {
  const response = await fetch(input, init);
  lastResponse = { status: response.status, challenge: response.headers.get('www-authenticate') };
  return response;
}

const orders = {
  async connect(order) {
    const headers = order.token === undefined ? {} : { Authorization: `Bearer ${order.token}` };
    const notes = none();
    const { client, call, transport } = open(order, { requestInit: { headers }, fetch: noted }, notes);
    await client.connect(transport);
    connections.set(order.as, { client, call, notes });
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
      const page = await connections.get(as).client.listTools(cursor === undefined ? undefined : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  },
  async call({ as, name, arguments: args, noted, meta }) {
    const { call, notes } = connections.get(as);
    if (!noted) {
      return call({ name, arguments: args });
    }
    Object.assign(notes, none());
    const params = { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) };
    const result = await call(params, { onprogress: (progress) => notes.progress.push(progress) });
    return { result, ...notes };
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
  await Promise.allSettled([...connections.values()].map(({ client }) => client.close()));
  process.exit(0);
}

main();
