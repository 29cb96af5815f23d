// What the tests of the page share: copies of vaults, servers, and pages that record what must not happen.

import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const web = join(dirname(fileURLToPath(import.meta.url)), '..');
const example = process.env.SIDENOTE_EXAMPLE ?? join(web, '..', 'example-vault');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The fixed time of the tests, and the evening before it. */
export const NOW = '2026-11-21T09:00:00Z';
export const YESTERDAY = '2026-11-20T21:30:00Z';

/** The program, or undefined. */
export function program() {
  const named = process.env.SIDENOTE_BIN ?? join(web, '..', 'target', 'release', 'sidenote');
  return existsSync(named) ? named : undefined;
}

/** The browser that CHROMIUM names or that is on the PATH, or undefined. */
export function browserPath() {
  if (process.env.CHROMIUM) return existsSync(process.env.CHROMIUM) ? process.env.CHROMIUM : undefined;
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']) {
      if (existsSync(join(folder, name))) return join(folder, name);
    }
  }
  return undefined;
}

export function launch() {
  return chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox', '--enable-unsafe-swiftshader', '--disable-dev-shm-usage'] });
}

const folders = [];
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporary(name) {
  const folder = mkdtempSync(join(tmpdir(), `sidenote-web-${name}-`));
  folders.push(folder);
  return folder;
}

/** A copy of the example vault. */
export function exampleVault() {
  const vault = join(temporary('example'), 'example-vault');
  cpSync(example, vault, { recursive: true });
  rmSync(join(vault, '.sidenote'), { recursive: true, force: true });
  const time = new Date('2026-11-19T08:00:00Z');
  for (const entry of readdirSync(vault, { recursive: true })) utimesSync(join(vault, entry), time, time);
  return vault;
}

/** Writes files into a new vault: paths and their texts. */
export function vaultOf(files) {
  const vault = join(temporary('vault'), 'vault');
  mkdirSync(vault, { recursive: true });
  for (const [path, text] of Object.entries(files)) write(vault, path, text);
  return vault;
}

export function write(vault, path, text) {
  mkdirSync(dirname(join(vault, path)), { recursive: true });
  writeFileSync(join(vault, path), text);
}

/** A vault of many notes in folders, with links, tags, properties and types; the same each time. */
export function largeVault(count) {
  const vault = join(temporary('large'), 'large');
  const topics = ['river', 'sensor', 'level', 'boat', 'varnish', 'bread', 'garden', 'meeting', 'archive', 'model'];
  let seed = 42;
  const random = (limit) => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed % limit;
  };
  const name = (index) => `${topics[index % 10]} note ${index}`;
  const folder = (index) => `${['Projects', 'Journal', 'Reference', 'People', 'Inbox'][index % 5]}/${topics[index % 10]}`;
  for (let index = 0; index < count; index++) {
    const links = Array.from({ length: 1 + random(4) }, () => `[[${name(random(count))}]]`);
    if (index % 50 === 0) links.push(`[[Missing ${index}]]`);
    write(
      vault,
      `${folder(index)}/${name(index)}.md`,
      `---\ntags: [${topics[(index * 7) % 10]}, ${topics[index % 10]}/part]\ntype: ${['fact', 'decision', 'general'][index % 3]}\ncreated: 20${20 + (index % 7)}-0${1 + (index % 9)}-1${index % 9}\n---\n# ${name(index)}\n\nThe ${topics[index % 10]} of number ${index} was seen with the ${topics[random(10)]}, see ${links.join(' and ')}.\n\n- [ ] check the ${topics[random(10)]}\n`,
    );
  }
  return vault;
}

/** The environment of a program in a test: nothing of the user, and a fixed time. */
function environment(vault, now) {
  const home = join(dirname(vault), 'home');
  mkdirSync(home, { recursive: true });
  return { PATH: process.env.PATH ?? '', HOME: home, XDG_CACHE_HOME: join(home, 'cache'), XDG_CONFIG_HOME: join(home, 'config'), XDG_DATA_HOME: join(home, 'data'), LANG: 'C.UTF-8', ...(now ? { SIDENOTE_NOW: now } : {}) };
}

/** Runs a command of the program on a vault and gives its output. */
export function run(vault, args, { now = NOW, input } = {}) {
  return execFileSync(program(), ['--vault', vault, ...args], { env: environment(vault, now), encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
}

/** Has an agent call tools over MCP: names and arguments, one after the other. */
export async function agent(vault, client, calls, { now = YESTERDAY } = {}) {
  const child = spawn(program(), ['--vault', vault, 'mcp'], { env: environment(vault, now), stdio: ['pipe', 'pipe', 'ignore'] });
  const answers = new Map();
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    const lines = (rest + part).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      answers.get(message.id)?.(message);
    }
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let count = 0;
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      const id = ++count;
      setTimeout(() => reject(new Error(`no answer to ${method}`)), 60_000).unref();
      answers.set(id, (message) => (message.error || message.result?.isError ? reject(new Error(JSON.stringify(message))) : resolve(message.result)));
      send({ id, method, params });
    });
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: client, version: '1' } });
  send({ method: 'notifications/initialized' });
  for (const [name, args] of calls) await ask('tools/call', { name, arguments: args });
  child.stdin.end();
  await new Promise((resolve) => child.on('exit', resolve));
}

/** Starts `sidenote web` on a vault. `port` 0 takes any. */
export async function serve(vault, { now = NOW, args = [], port = 0 } = {}) {
  const child = spawn(program(), ['--vault', vault, 'web', '--addr', `127.0.0.1:${port}`, '--no-open', ...args], { env: environment(vault, now), stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const first = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      text += part;
      const match = /http:\/\/127\.0\.0\.1:(\d+)\/\?token=\S+/.exec(text);
      if (match) resolve({ url: match[0], port: Number(match[1]) });
    });
    child.on('exit', (code) => reject(new Error(`sidenote web ended with ${code}: ${errors}`)));
    setTimeout(() => reject(new Error(`sidenote web printed no address: ${text} ${errors}`)), 60_000).unref();
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  return {
    ...first,
    base: `http://127.0.0.1:${first.port}`,
    pid: child.pid,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}

/**
 * Opens a page that is let in, and records what must not happen: errors, requests to other origins, dialogs, and calls of
 * `hit()`, which hostile texts try.
 */
export async function open(browser, server, path = '/', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, timezoneId: 'Europe/Berlin', locale: 'en-GB', ...options });
  const page = await context.newPage();
  const seen = { errors: [], foreign: [], dialogs: [], hits: [], blocked: [] };
  await page.exposeFunction('hit', (text) => seen.hits.push(String(text)));
  page.on('pageerror', (error) => seen.errors.push(error.message));
  page.on('console', (message) => {
    const text = message.text();
    if (/Content.Security.Policy/i.test(text)) seen.blocked.push(text);
    // The browser itself reports answers such as 404 and a server that is away; what the page does with them is tested.
    else if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(text)) seen.errors.push(text);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'data:' && url.origin !== server.base) seen.foreign.push(request.url());
  });
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await page.goto(server.url);
  if (path !== '/') await page.goto(server.base + path);
  await settle(page);
  return { page, context, seen };
}

/** Waits until nothing is loading. */
export async function settle(page) {
  await page.waitForSelector('main h1, main .failure', { state: 'attached' });
  await page.waitForFunction(() => !document.querySelector('.skeleton, [aria-busy="true"]'), null, { timeout: 60_000 });
}

/** The violations that axe finds, a line each. */
export async function violations(page) {
  // axe is run beside the page's own scripts, whose policy it must not change.
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
  return result.violations.flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${violation.help}: ${node.target.join(' ')} ${(node.any[0]?.message ?? node.all[0]?.message ?? '').slice(0, 160)}`));
}

export const VIEWS = {
  search: '/',
  results: '/search?q=river%20gauge',
  note: '/note/Tour/Markdown%20sampler.md',
  links: '/note/Projects/River%20gauges/River%20gauges.md?tab=links',
  weight: '/note/Projects/River%20gauges/River%20gauges.md?tab=weight',
  history: '/note/Inbox.md?tab=history',
  edit: '/note/Tour/Markdown%20sampler.md?edit=1',
  notes: '/notes?folder=Projects%2FRiver%20gauges',
  day: '/day',
  tasks: '/tasks',
  canvas: '/note/Boards/Gauge%20network.canvas',
  graph: '/graph',
  around: '/graph?around=Projects%2FRiver%20gauges%2FRiver%20gauges.md&depth=2',
  memory: '/memory',
  changes: '/memory?tab=changes',
  away: '/memory?tab=away',
  duplicates: '/memory?tab=duplicates',
  activity: '/activity',
  review: '/review',
  week: '/review?tab=week',
  health: '/health',
  status: '/status',
};

/** What an agent did yesterday in the example vault, and what happened to some notes since. */
export async function livedIn(vault) {
  run(vault, ['index'], { now: '2026-11-19T09:00:00Z' });
  run(vault, ['memory', 'pin', 'Prefers metric units'], { now: '2026-11-19T10:00:00Z' });
  run(vault, ['memory', 'vote', 'Sensor drift', 'up'], { now: '2026-11-19T11:00:00Z' });
  await agent(vault, 'nightly-agent', [
    ['write_note', { title: 'Weir gauge moved to radar', content: 'The gauge at the weir was moved to radar on Thursday. Its zero is 2.31 m above the old one. See [[Sensor drift]].', type: 'fact', tags: ['river'] }],
    ['edit_note', { note: 'Inbox', action: 'append', text: 'Ask Ruth about the zero of the weir gauge.' }],
    ['edit_note', { note: 'Someday', action: 'set', key: 'status', value: 'waiting' }],
    ['edit_note', { note: 'Sensor drift', action: 'append', text: 'The radar at the weir does not drift.', propose: 'The note does not say how the new sensor behaves.' }],
  ]);
  run(vault, ['rename', 'Varnish log', 'Varnish diary'], { now: '2026-11-20T22:10:00Z' });
  run(vault, ['delete', 'Packing list'], { now: '2026-11-20T22:12:00Z' });
  run(vault, ['memory', 'forget', 'A Field Guide to Small Rivers'], { now: '2026-11-20T22:13:00Z' });
  return vault;
}
