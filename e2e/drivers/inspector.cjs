// The inspector's command line, worked through stdin and stdout like the SDK drivers: one JSON order a line in, one JSON
// answer a line out. Each order is a run of its own, so a connection is no more than what to connect to.
//
// Usage: node inspector.cjs, with THIRD_PARTY naming the folder that holds node_modules.
'use strict';
const { execFile } = require('node:child_process');
const path = require('node:path');
const readline = require('node:readline');

const program = path.join(
  process.env.THIRD_PARTY,
  'node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js',
);
// It keeps files in the home folder; a run of ours must not find or leave any in the user's.
const env = { ...process.env, HOME: path.join(process.env.THIRD_PARTY, 'inspector-home') };
const connections = new Map();

// `mode` is the era: legacy, auto or modern.
function run({ url, token, mode }, method, ...more) {
  const how = ['--server-url', url, '--transport', 'http', '--protocol-era', mode, '--format', 'json', '--quiet'];
  // It would open a browser for a login.
  how.push('--stored-auth-only');
  if (token !== undefined) {
    how.push('--header', `Authorization: Bearer ${token}`);
  }
  const given = [program, ...how, '--method', method, ...more];
  return new Promise((resolve, reject) => {
    const options = { env, timeout: 60_000, maxBuffer: 1 << 26 };
    execFile(process.execPath, given, options, (error, stdout, stderr) => {
      // A tool's own error is told on stderr too, and still the result is on stdout.
      if (stdout.trim() !== '') {
        resolve(JSON.parse(stdout).result);
      } else {
        reject(new Error(stderr || String(error)));
      }
    });
  });
}

const orders = {
  async connect(order) {
    connections.set(order.as, order);
    return run(order, 'initialize');
  },
  async list({ as }) {
    return (await run(connections.get(as), 'tools/list')).tools;
  },
  async call({ as, name, arguments: args }) {
    const given = ['--tool-name', name, '--tool-args-json', JSON.stringify(args)];
    return run(connections.get(as), 'tools/call', ...given);
  },
};

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let answer;
    try {
      answer = { ok: await orders[order.order](order) };
    } catch (error) {
      answer = { error: { message: error.message } };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}

main();
