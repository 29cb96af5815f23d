// Runs all tests of the page, and says what is missing where they cannot run.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browserPath, program } from './support.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const missing = [];
if (!program()) missing.push(`no program: set SIDENOTE_BIN to sidenote (it is ${process.env.SIDENOTE_BIN ?? 'not set'}, and target/release/sidenote does not exist)`);
if (!browserPath()) missing.push('no browser: install Chromium, or set CHROMIUM to one');
if (missing.length > 0) {
  console.error(`The tests of the page cannot run:\n  ${missing.join('\n  ')}`);
  process.exit(2);
}
const wanted = process.argv.slice(2);
const files = readdirSync(here)
  .filter((name) => name.endsWith('.test.mjs') && (wanted.length === 0 || wanted.some((word) => name.includes(word))))
  .map((name) => join(here, name));
const done = spawnSync(process.execPath, ['--test', '--test-concurrency=1', '--test-timeout=600000', '--test-reporter=spec', ...files], { stdio: 'inherit' });
process.exit(done.status ?? 1);
