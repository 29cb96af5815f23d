// Positions in texts, unified diffs and names of paths.

import type { Trashed } from './types';

/** Splits a text at byte ranges of its UTF-8 form, as marked and unmarked parts. */
export function splitMarks(text: string, marks: readonly (readonly [number, number])[]): { text: string; marked: boolean }[] {
  const wanted = new Set<number>();
  for (const [start, end] of marks) wanted.add(start).add(end);
  const unit = new Map<number, number>();
  let bytes = 0;
  let index = 0;
  for (const character of text) {
    if (wanted.has(bytes)) unit.set(bytes, index);
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    index += character.length;
  }
  unit.set(bytes, index);
  const parts: { text: string; marked: boolean }[] = [];
  let done = 0;
  for (const [start, end] of marks) {
    const from = unit.get(start);
    const to = unit.get(end);
    if (from === undefined || to === undefined || from < done || to <= from) continue;
    if (from > done) parts.push({ text: text.slice(done, from), marked: false });
    parts.push({ text: text.slice(from, to), marked: true });
    done = to;
  }
  if (done < text.length) parts.push({ text: text.slice(done), marked: false });
  return parts;
}

export type DiffLine =
  | { kind: 'same' | 'added' | 'removed'; before: number | null; after: number | null; text: string; changed?: [number, number] }
  | { kind: 'hunk'; text: string }
  | { kind: 'note'; text: string };

export interface DiffFile {
  name: string;
  from: string | null;
  to: string | null;
  lines: DiffLine[];
  added: number;
  removed: number;
}

function diffName(text: string): string | null {
  const name = text.replace(/\t.*$/, '');
  if (name === '/dev/null') return null;
  const plain = name.startsWith('"') && name.endsWith('"') ? unquote(name.slice(1, -1)) : name;
  return plain.replace(/^[ab]\//, '');
}

/** Reads a name that git put in quotes: octal escapes are bytes of UTF-8. */
function unquote(text: string): string {
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? '';
    if (character !== '\\') {
      const point = text.codePointAt(index) ?? 0;
      const whole = String.fromCodePoint(point);
      bytes.push(...encoder.encode(whole));
      index += whole.length - 1;
      continue;
    }
    const octal = /^[0-7]{3}/.exec(text.slice(index + 1));
    if (octal) {
      bytes.push(Number.parseInt(octal[0], 8));
      index += 3;
    } else {
      const next = text[index + 1] ?? '';
      bytes.push(...encoder.encode({ n: '\n', t: '\t', r: '\r' }[next] ?? next));
      index += 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** Reads a unified diff as `git diff` prints it. */
export function parseDiff(diff: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | null = null;
  let before = 0;
  let after = 0;
  let leftBefore = 0;
  let leftAfter = 0;
  const open = (): DiffFile => {
    const next: DiffFile = { name: '', from: null, to: null, lines: [], added: 0, removed: 0 };
    files.push(next);
    return next;
  };
  for (const line of diff.split('\n')) {
    if (leftBefore > 0 || leftAfter > 0) {
      const sign = line[0];
      const text = line.slice(1);
      if (file && sign === '+') {
        file.lines.push({ kind: 'added', before: null, after: after++, text });
        file.added += 1;
        leftAfter -= 1;
        continue;
      }
      if (file && sign === '-') {
        file.lines.push({ kind: 'removed', before: before++, after: null, text });
        file.removed += 1;
        leftBefore -= 1;
        continue;
      }
      if (file && (sign === ' ' || line === '')) {
        file.lines.push({ kind: 'same', before: before++, after: after++, text });
        leftBefore -= 1;
        leftAfter -= 1;
        continue;
      }
    }
    if (line.startsWith('diff --git ')) {
      file = open();
      file.name = diffName(line.replace(/^.* (?="?b\/)/, '')) ?? '';
      leftBefore = leftAfter = 0;
    } else if (line.startsWith('--- ')) {
      if (!file || file.lines.some((each) => each.kind === 'hunk')) file = open();
      file.from = diffName(line.slice(4));
      if (file.from) file.name = file.from;
    } else if (line.startsWith('+++ ')) {
      file ??= open();
      file.to = diffName(line.slice(4));
      if (file.to) file.name = file.to;
    } else if (line.startsWith('@@')) {
      file ??= open();
      const match = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
      if (match) {
        before = Number(match[1]);
        after = Number(match[3]);
        leftBefore = match[2] === undefined ? 1 : Number(match[2]);
        leftAfter = match[4] === undefined ? 1 : Number(match[4]);
        file.lines.push({ kind: 'hunk', text: match[5] ?? '' });
      }
    } else if (line.startsWith('rename from ') || line.startsWith('rename to ')) {
      file ??= open();
      const name = diffName(line.replace(/^rename (from|to) /, ''));
      if (line.startsWith('rename from ')) file.from = name;
      else {
        file.to = name;
        file.name = name ?? file.name;
      }
    } else if (line.startsWith('\\')) {
      file?.lines.push({ kind: 'note', text: line.slice(2) });
    } else if (/^(new file|deleted file|old mode|new mode|Binary files|similarity)/.test(line) && !line.startsWith('similarity')) {
      file?.lines.push({ kind: 'note', text: line });
    }
  }
  for (const each of files) markChangedParts(each.lines);
  return files;
}

/** Marks what differs within pairs of removed and added lines. */
function markChangedParts(lines: DiffLine[]): void {
  for (let index = 0; index < lines.length; index++) {
    let removed = index;
    while (lines[removed]?.kind === 'removed') removed++;
    const count = removed - index;
    if (count === 0) continue;
    let added = removed;
    while (lines[added]?.kind === 'added') added++;
    if (added - removed === count) {
      for (let pair = 0; pair < count; pair++) {
        const a = lines[index + pair];
        const b = lines[removed + pair];
        if (!a || !b || !('before' in a) || !('before' in b)) continue;
        let start = 0;
        while (start < a.text.length && start < b.text.length && a.text[start] === b.text[start]) start++;
        let end = 0;
        while (end < a.text.length - start && end < b.text.length - start && a.text[a.text.length - 1 - end] === b.text[b.text.length - 1 - end]) end++;
        if (start + end > 0) {
          a.changed = [start, a.text.length - end];
          b.changed = [start, b.text.length - end];
        }
      }
    }
    index = added - 1;
  }
}

/** The file name of a path without the ending of notes. */
export function fileName(path: string): string {
  return (path.split('/').pop() ?? path).replace(/\.md$/i, '');
}

export function folderOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end < 0 ? '' : path.slice(0, end);
}

export function isNotePath(path: string): boolean {
  return /\.(md|canvas)$/i.test(path) && !path.startsWith('.trash/');
}

/** A deleted file, from either form of the reply. */
export function trashOf(item: string | Trashed): Trashed {
  return typeof item === 'string' ? { path: item } : item;
}
