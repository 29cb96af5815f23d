// Builds the page into assets/web: each file compressed, and the list of them for `include_bytes!`.
// With --check nothing is written: it fails where the built files differ from what the sources give. --out FOLDER writes
// elsewhere, --sizes lists the sizes.

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { build } from 'vite';

const web = join(dirname(fileURLToPath(import.meta.url)), '..');
const out = process.argv.indexOf('--out');
const target = out > 0 ? resolve(process.argv[out + 1]) : join(web, '..', 'assets', 'web');
const check = process.argv.includes('--check');
const MOST = 1_500_000;
const MOST_AT_FIRST = 150_000;
/** Files of these kinds are compressed already. */
const AS_THEY_ARE = /\.(woff2|png|jpg|webp)$/;

const walk = (folder, base = folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? walk(path, base) : [relative(base, path).split('\\').join('/')];
  });
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 8);

/** The folders of packages whose code is in the built files. */
const used = new Set();
const collect = {
  name: 'collect-packages',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      for (const id of chunk.moduleIds ?? []) {
        const match = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.split('\\').join('/').replace(/^\0/, ''));
        if (match) used.add(match[1]);
      }
    }
  },
};

process.chdir(web);
await build({ configFile: 'vite.config.ts', logLevel: 'warn', plugins: [collect], worker: { plugins: () => [collect] } });
await build({ configFile: 'vite.mermaid.config.ts', logLevel: 'warn', plugins: [collect] });

/** What is known of a package: its licence, with the text. */
const describe = (folder) => {
  const { name, version, license, repository, homepage } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^(licen[sc]e|copying|unlicense)/i.test(entry));
  const text = file ? readFileSync(join(folder, file), 'utf8').replace(/\r\n/g, '\n').trim() : '';
  const address = (typeof repository === 'string' ? repository : repository?.url) ?? homepage ?? '';
  return {
    name,
    version,
    license: (typeof license === 'string' ? license : license?.type) ?? (/Permission is hereby granted, free of charge/.test(text) ? 'MIT' : ''),
    source: address.replace(/^git\+/, '').replace(/^(?:git|ssh):\/\/(?:git@)?/, 'https://').replace(/\.git$/, '').replace(/^github:/, 'https://github.com/').replace(/^([\w-]+\/[\w.-]+)$/, 'https://github.com/$1'),
    text,
  };
};
const packages = [...used].map(describe).sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1));
const thirdParty = `${JSON.stringify(packages, null, 1)}\n`;

/** The built files by address. */
const files = new Map();
for (const name of walk('dist/page')) files.set(name, readFileSync(join('dist/page', name)));
const script = readFileSync('dist/mermaid/frame.js');
const scriptName = `assets/mermaid-${hash(script)}.js`;
files.set(scriptName, script);
const frame = Buffer.from(readFileSync('mermaid/frame.html', 'utf8').replace('SCRIPT', `/${scriptName}`));
const frameName = `assets/mermaid-${hash(frame)}.html`;
files.set(frameName, frame);
const index = files.get('index.html').toString('utf8').replace('name="mermaid-frame" content=""', `name="mermaid-frame" content="/${frameName}"`);
if (!index.includes(frameName)) throw new Error('index.html has no place for the address of the frame of diagrams');
files.set('index.html', Buffer.from(index));

const names = [...files.keys()].sort();
const packed = new Map();
let list = '&[\n';
let total = 0;
for (const name of names) {
  const bytes = files.get(name);
  const plain = AS_THEY_ARE.test(name);
  const stored = plain ? name : `${name}.gz`;
  const content = plain ? bytes : gzipSync(bytes, { level: 9 });
  if (!plain) content[9] = 255; // The system of the builder is no part of the file.
  packed.set(stored, content);
  total += content.length;
  list += `    ("${name}", "${plain ? '' : 'gzip'}", include_bytes!("${stored}")),\n`;
}
list += ']\n';
packed.set('files.rs', Buffer.from(list));

/** What is loaded before the first result shows: index.html, its scripts and their static imports, its styles. */
const first = new Set(['index.html']);
const reach = (name) => {
  if (first.has(name) || !files.has(name)) return;
  first.add(name);
  if (!name.endsWith('.js')) return;
  const text = files.get(name).toString('utf8');
  for (const match of text.matchAll(/(?:from|import)\s*["'](\.[^"']+\.js)["']/g)) reach(posix.join(posix.dirname(name), match[1]));
};
for (const match of index.matchAll(/(?:src|href)="\/([^"]+)"/g)) reach(match[1]);
const atFirst = [...first].reduce((sum, name) => sum + (packed.get(`${name}.gz`) ?? packed.get(name)).length, 0);

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
console.log(`${names.length} files, ${kilobytes(total)} compressed (at most ${kilobytes(MOST)}); ${kilobytes(atFirst)} before the first result (at most ${kilobytes(MOST_AT_FIRST)})`);
if (process.argv.includes('--sizes')) for (const name of names) console.log(`  ${kilobytes((packed.get(`${name}.gz`) ?? packed.get(name)).length).padStart(10)} ${first.has(name) ? '*' : ' '} ${name}`);
if (total > MOST || atFirst > MOST_AT_FIRST) {
  console.error('The page is too large.');
  process.exit(1);
}

if (check) {
  const problems = [];
  if (readFileSync('third-party.json', 'utf8') !== thirdParty) problems.push('web/third-party.json, the list of packages in it, differs');
  let there = [];
  try {
    there = walk(target);
  } catch {
    problems.push(`${target} is missing`);
  }
  for (const name of there) if (!packed.has(name)) problems.push(`${name} is not built any more`);
  for (const [name, content] of packed) {
    if (!there.includes(name)) {
      problems.push(`${name} is missing`);
      continue;
    }
    // Versions of zlib compress differently, so the contents are compared.
    const open = (bytes) => (name.endsWith('.gz') ? gunzipSync(bytes) : bytes);
    if (!open(readFileSync(join(target, name))).equals(open(content))) problems.push(`${name} differs`);
  }
  if (problems.length > 0) {
    console.error(`assets/web is not what the sources give; run \`npm run build\` and commit it:\n  ${problems.join('\n  ')}`);
    process.exit(1);
  }
  console.log('assets/web is what the sources give');
} else {
  rmSync(target, { recursive: true, force: true });
  for (const [name, content] of packed) {
    const path = join(target, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  if (out < 0) writeFileSync('third-party.json', thirdParty);
}
