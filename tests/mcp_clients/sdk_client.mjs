// Drives the real program with the official TypeScript client: sdk_client.mjs ERA TRANSPORT PROGRAM PROJECT.
// ERA: `v1` (the maintenance line, which initializes), `v2-legacy` or `v2-modern` (the current line, without and with server/discover).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';

const [era, transport, program, project] = process.argv.slice(2);

async function classes() {
  if (era === 'v1') {
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, elicitation: ElicitRequestSchema };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, elicitation: 'elicitation/create' };
}

// Path, mode and content of everything, in order.
function snapshot(folder, base = folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    const rest = entry.isDirectory() ? snapshot(full, base) : [fs.readFileSync(full, 'utf8')];
    return [path.relative(base, full), fs.statSync(full).mode, fs.statSync(full).mtimeMs, ...rest];
  });
}

async function openTransport({ StdioClientTransport, StreamableHTTPClientTransport }) {
  const words = ['--log-level', 'error', 'mcp', '-p', project];
  if (transport === 'stdio')
    return { channel: new StdioClientTransport({ command: program, args: words, env: process.env }), end: async () => {} };
  const server = spawn(program, [...words, '--http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = readline.createInterface({ input: server.stdout });
  const place = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
  const ended = new Promise((resolve) => server.on('exit', resolve));
  process.on('exit', () => server.kill('SIGKILL'));  // whatever went wrong, it does not stay
  const headers = { Authorization: `Bearer ${place.token}` };
  return {
    channel: new StreamableHTTPClientTransport(new URL(place.url), { requestInit: { headers } }),
    end: async () => {
      server.kill('SIGTERM');
      assert.equal(await ended, 0);
    },
  };
}

function options() {
  const chosen = { capabilities: { elicitation: {} } };
  if (era === 'v2-modern') chosen.versionNegotiation = { mode: { pin: '2026-07-28' } };
  if (era === 'v2-legacy') chosen.versionNegotiation = { mode: 'legacy' };
  return chosen;
}

async function useTools(client) {
  const { tools } = await client.listTools();
  assert.equal(tools.length, 12);
  const before = snapshot(project);
  const progress = [];
  const ran = await client.callTool(
    { name: 'execute_command', arguments: { command: 'rm -r src; mv keep.txt kept.txt; sleep 1.2; echo done' } },
    ...(era === 'v1' ? [undefined] : []), { onprogress: (told) => progress.push(told) });
  assert.equal(ran.structuredContent.exit_code, 0);
  assert.equal(ran.structuredContent.stdout, 'done\n');
  assert.ok(progress.length >= 1, 'no progress came');
  assert.equal(fs.existsSync(path.join(project, 'src')), false);
  const undone = await client.callTool({ name: 'undo', arguments: {} });
  assert.equal(undone.isError, false);
  assert.deepEqual(snapshot(project), before);
  const failed = await client.callTool({ name: 'read_file', arguments: { path: 'missing' } });
  assert.equal(failed.isError, true);
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }));
}

// A person is asked before many files are deleted: once they deny it, then they allow it.
async function decide(client, elicitation) {
  for (let i = 0; i < 80; ++i) fs.writeFileSync(path.join(project, `old${i}`), 'x');
  const before = snapshot(project);
  const asked = [];
  let decision = 'deny';
  client.setRequestHandler(elicitation, async (request) => {
    asked.push(request.params.message);
    return { action: 'accept', content: { decision } };
  });
  const remove = { name: 'execute_command', arguments: { command: 'rm old*' } };
  const denied = await client.callTool(remove);
  assert.equal(denied.isError, true);
  assert.equal(asked.length, 1);
  assert.match(asked[0], /rm old/);
  assert.deepEqual(snapshot(project), before);
  decision = 'allow';
  const allowed = await client.callTool(remove);
  assert.equal(allowed.isError, false);
  assert.equal(asked.length, 2);
  assert.equal(fs.existsSync(path.join(project, 'old0')), false);
  await client.callTool({ name: 'undo', arguments: {} });
  assert.deepEqual(snapshot(project), before);
}

async function useResources(client) {
  const { resources } = await client.listResources();
  const file = resources.find((resource) => resource.name === 'keep.txt');
  const { contents } = await client.readResource({ uri: file.uri });
  assert.equal(contents[0].text, 'kept\n');
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 2);
}

async function cancel(client) {
  const controller = new AbortController();
  const running = client.callTool(
    { name: 'execute_command', arguments: { command: 'touch began; sleep 100' } },
    ...(era === 'v1' ? [undefined] : []), { signal: controller.signal });
  const refused = assert.rejects(running);
  while (!fs.existsSync(path.join(project, 'began'))) await new Promise((resolve) => setTimeout(resolve, 20));
  controller.abort('enough');
  await refused;
  for (;;) {
    const status = await client.callTool({ name: 'get_session_status', arguments: {} });
    if (status.structuredContent.state === 'idle') break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const found = await classes();
const { channel, end } = await openTransport(found);
const client = new found.Client({ name: 'sandglass-test', version: '1' }, options());
await client.connect(channel);
assert.equal(client.getServerVersion().name, 'sandglass');
if (era !== 'v1') assert.equal(client.getProtocolEra(), era === 'v2-modern' ? 'modern' : 'legacy');
await useTools(client);
await useResources(client);
await decide(client, found.elicitation);
await cancel(client);
await client.close();
await end();
