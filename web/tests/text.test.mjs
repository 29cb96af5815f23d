// The parts of the page that need no browser: marks by bytes, unified diffs, and places of nodes.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createServer } from 'vite';
import { web } from './support.mjs';

let vite;
let text;
before(async () => {
  vite = await createServer({ root: web, configFile: false, logLevel: 'error', server: { middlewareMode: true, ws: false }, appType: 'custom', optimizeDeps: { noDiscovery: true } });
  text = await vite.ssrLoadModule('/src/text.ts');
});
after(() => vite?.close());

test('marks are ranges of bytes, whatever the letters', () => {
  const cases = [
    ['abc def', [[4, 7]], ['abc ', '[def]']],
    ['Møller 龙井 🐝 x', [[0, 7], [8, 14], [15, 19]], ['[Møller]', ' ', '[龙井]', ' ', '[🐝]', ' x']],
    ['abc', [], ['abc']],
    ['', [], []],
    ['aé', [[2, 3]], ['aé']], // within a letter: not marked
    ['abcd', [[0, 2], [1, 3]], ['[ab]', 'cd']], // the second overlaps
  ];
  for (const [source, marks, wanted] of cases) {
    const parts = text.splitMarks(source, marks).map((part) => (part.marked ? `[${part.text}]` : part.text));
    assert.deepEqual(parts, wanted, source);
    assert.equal(parts.join('').replaceAll(/[[\]]/g, ''), source);
  }
});

test('a unified diff is read: changes, new and removed files, moves, quoted names', () => {
  const diff = [
    'diff --git a/Plan.md b/Plan.md',
    '--- a/Plan.md',
    '+++ b/Plan.md',
    '@@ -1,3 +1,4 @@ # Plan',
    ' # Plan',
    '-status: open',
    '+status: done',
    '+--- a line that looks like a header',
    ' end',
    '\\ No newline at end of file',
    'diff --git a/New.md b/New.md',
    'new file mode 100644',
    '--- /dev/null',
    '+++ b/New.md',
    '@@ -0,0 +1 @@',
    '+text',
    'diff --git "a/\\350\\214\\266.md" "b/\\350\\214\\266.md"',
    'deleted file mode 100644',
    '--- "a/\\350\\214\\266.md"',
    '+++ /dev/null',
    '@@ -1 +0,0 @@',
    '-x',
    'diff --git a/Old name.md b/New name.md',
    'similarity index 100%',
    'rename from Old name.md',
    'rename to New name.md',
    '',
  ].join('\n');
  const files = text.parseDiff(diff);
  assert.deepEqual(
    files.map(({ name, from, to, added, removed }) => ({ name, from, to, added, removed })),
    [
      { name: 'Plan.md', from: 'Plan.md', to: 'Plan.md', added: 2, removed: 1 },
      { name: 'New.md', from: null, to: 'New.md', added: 1, removed: 0 },
      { name: '茶.md', from: '茶.md', to: null, added: 0, removed: 1 },
      { name: 'New name.md', from: 'Old name.md', to: 'New name.md', added: 0, removed: 0 },
    ],
  );
  const added = files[0].lines.filter((line) => line.kind === 'added');
  assert.deepEqual(added.map((line) => [line.after, line.text]), [[2, 'status: done'], [3, '--- a line that looks like a header']]);
  assert.equal(files[0].lines.find((line) => line.kind === 'removed').before, 2);
});

test('what differs within a pair of lines is marked', () => {
  const [file] = text.parseDiff('--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-status: open now\n+status: done now\n');
  const [removed, added] = file.lines.filter((line) => line.kind !== 'hunk');
  assert.equal(removed.text.slice(...removed.changed), 'open');
  assert.equal(added.text.slice(...added.changed), 'done');
});

test('an empty diff has no files', () => assert.deepEqual(text.parseDiff(''), []));
