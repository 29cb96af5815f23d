// The parts of the page that need no browser: marks by bytes, and differences.

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

test('the lines of a difference become rows of two columns', () => {
  const line = (kind, text) => ({ kind, before: null, after: null, text });
  const cases = [
    [[line('same', 'a'), line('removed', 'b'), line('removed', 'c'), line('added', 'B'), line('same', 'd')], ['a|a', 'b|B', 'c|', 'd|d']],
    [[line('added', 'a'), line('removed', 'b')], ['|a', 'b|']],
    [[{ kind: 'hunk', text: 'x' }, line('added', 'a'), { kind: 'note', text: 'y' }], ['= x', '|a', '= y']],
    [[line('removed', 'a'), { kind: 'note', text: 'y' }, line('added', 'A'), line('same', 'b')], ['a|A', '= y', 'b|b']],
    [[line('removed', 'a'), line('added', 'A'), line('added', 'B')], ['a|A', '|B']],
    [[], []],
  ];
  for (const [lines, wanted] of cases) {
    const rows = text.pairedLines(lines).map((row) => (row.text === undefined ? `${row.before?.text ?? ''}|${row.after?.text ?? ''}` : `= ${row.text}`));
    assert.deepEqual(rows, wanted);
  }
});

test('a difference is read: changes, new and removed files, moves, folders', () => {
  const diff = [
    '--- a/Plan.md',
    '+++ a/Plan.md',
    '@@ -1,3 +1,4 @@',
    ' # Plan',
    '-status: open',
    '+status: done',
    '+--- a line that looks like a header',
    ' end',
    '\\ No newline at end of file',
    'create New.md',
    '--- /dev/null',
    '+++ New.md',
    '@@ -0,0 +1 @@',
    '+text',
    'delete 茶.md',
    '--- 茶.md',
    '+++ /dev/null',
    '@@ -1 +0,0 @@',
    '-x',
    'rename .trash/Old name.md -> New name.md',
    'rename A.md -> B -> C.md',
    '--- A.md',
    '+++ B -> C.md',
    '@@ -1 +1 @@',
    '-a',
    '+b',
    'rename folder Old -> New',
    'create Second.md',
    '',
  ].join('\n');
  const files = text.parseDiff(diff);
  assert.deepEqual(
    files.map(({ name, from, to, added, removed }) => [name, from, to, added, removed]),
    [
      ['a/Plan.md', 'a/Plan.md', 'a/Plan.md', 2, 1],
      ['New.md', null, 'New.md', 1, 0],
      ['茶.md', '茶.md', null, 0, 1],
      ['New name.md', '.trash/Old name.md', 'New name.md', 0, 0],
      ['B -> C.md', 'A.md', 'B -> C.md', 1, 1],
      ['New', 'Old', 'New', 0, 0],
      ['Second.md', null, 'Second.md', 0, 0],
    ],
  );
  const added = files[0].lines.filter((line) => line.kind === 'added');
  assert.deepEqual(added.map((line) => [line.after, line.text]), [[2, 'status: done'], [3, '--- a line that looks like a header']]);
  assert.equal(files[0].lines.find((line) => line.kind === 'removed').before, 2);
});

test('what differs within a pair of lines is marked', () => {
  const [file] = text.parseDiff('--- x.md\n+++ x.md\n@@ -1 +1 @@\n-status: open now\n+status: done now\n');
  const [removed, added] = file.lines.filter((line) => line.kind !== 'hunk');
  assert.equal(removed.text.slice(...removed.changed), 'open');
  assert.equal(added.text.slice(...added.changed), 'done');
});

test('times, dates and numbers are marked whole', () => {
  const [file] = text.parseDiff('--- x.md\n+++ x.md\n@@ -1 +1 @@\n-runs at 02:15 UTC\n+runs at 03:30 UTC\n');
  const [removed, added] = file.lines.filter((line) => line.kind !== 'hunk');
  assert.equal(removed.text.slice(...removed.changed), '02:15');
  assert.equal(added.text.slice(...added.changed), '03:30');
});

test('two texts are compared word by word', () => {
  const marked = (parts) => parts.filter((part) => part.marked).map((part) => part.text.trim());
  const whole = (parts) => parts.map((part) => part.text).join('');
  const cases = [
    ['open the lid, wait 5 s', 'open the lid and wait 5 s', [','], ['and']],
    ['the old battery', 'the new battery', ['old'], ['new']],
    ['a b c', 'a b c', [], []],
    ['', 'x', [], ['x']],
    ['Møller 龙 at 02:15', 'Møller 龙 at 02:45', ['02:15'], ['02:45']],
  ];
  for (const [a, b, left, right] of cases) {
    const [one, other] = text.wordDifferences(a, b);
    assert.deepEqual([marked(one), marked(other)], [left, right], `${a} | ${b}`);
    assert.deepEqual([whole(one), whole(other)], [a, b]);
  }
});

test('an empty diff has no files', () => assert.deepEqual(text.parseDiff(''), []));

test('a language is that of the script, and of most letters', () => {
  const cases = [
    ['', null],
    ['The river', null],
    ['Река', null],
    ['2026-11-21 ✓', null],
    ['수위 관측', 'ko'],
    ['river 팀에 보고서를 보냅니다', 'ko'],
    ['朝鮮半島의 하천', 'ko'],
    ['A long sentence in English about 수위', null],
    ['水位の観測', 'ja'],
    ['プロジェクト', 'ja'],
    ['水位', null], // Chinese or Japanese
    ['每天早上测量河流的水位并把数值写进表格然后', 'zh'],
    ['每天早上测量河流的水位，并把数值写进表格。品牌是“优の良品”，今天去买。', 'zh'],
  ];
  for (const [source, language] of cases) {
    assert.equal(text.languageOf(source), language, source);
    assert.equal(text.languageOf(source, 'ja'), language ?? (source === '水位' ? 'ja' : null), source);
    assert.deepEqual(text.written(source), language ? { dir: 'auto', lang: language } : { dir: 'auto' }, source);
  }
});

test('a name is cut by its width, and never within a letter', () => {
  const cases = [
    ['river', 5, 'river'],
    ['riverside', 6, 'river…'],
    ['a river', 3, 'a…'],
    ['河川水位', 8, '河川水位'],
    ['河川水位観測', 8, '河川水…'],
    ['e\u0301e\u0301e\u0301', 6, 'e\u0301e\u0301e\u0301'],
    ['e\u0301e\u0301e\u0301e\u0301', 3, 'e\u0301…'],
    ['👩‍🔬👩‍🔬👩‍🔬', 6, '👩‍🔬👩‍🔬…'],
    ['', 4, ''],
  ];
  for (const [source, most, wanted] of cases) assert.equal(text.shortened(source, most), wanted, source);
});
