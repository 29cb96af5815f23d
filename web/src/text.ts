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

const NOTHING = '/dev/null';
const ARROW = ' -> ';

/**
 * Reads a difference as sidenote prints it: unified diffs with paths as they are, and the lines `create`, `delete`,
 * `rename` and `rename folder` for what happens to whole files.
 */
export function parseDiff(diff: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | null = null;
  let before = 0;
  let after = 0;
  let leftBefore = 0;
  let leftAfter = 0;
  const open = (from: string | null, to: string | null): DiffFile => {
    const next: DiffFile = { name: to ?? from ?? '', from, to, lines: [], added: 0, removed: 0 };
    files.push(next);
    return next;
  };
  for (const line of diff.split('\n')) {
    const sign = line[0];
    if (file && (leftBefore > 0 || leftAfter > 0) && sign !== '\\') {
      const text = line.slice(1);
      if (sign === '+') {
        file.lines.push({ kind: 'added', before: null, after: after++, text });
        file.added += 1;
        leftAfter -= 1;
      } else if (sign === '-') {
        file.lines.push({ kind: 'removed', before: before++, after: null, text });
        file.removed += 1;
        leftBefore -= 1;
      } else {
        file.lines.push({ kind: 'same', before: before++, after: after++, text });
        leftBefore -= 1;
        leftAfter -= 1;
      }
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
    if (line.startsWith('create ')) file = open(null, line.slice(7));
    else if (line.startsWith('delete ')) file = open(line.slice(7), null);
    else if (line.startsWith('rename ') && line.includes(ARROW)) {
      const names = line.slice(line.startsWith('rename folder ') ? 14 : 7);
      const at = names.indexOf(ARROW);
      file = open(names.slice(0, at), names.slice(at + ARROW.length));
    } else if (line.startsWith('--- ')) {
      const name = line.slice(4);
      // The lines `create`, `delete` and `rename` stand above the difference of the same file.
      const begun: DiffFile | undefined = files[files.length - 1];
      const follows = begun && begun.lines.length === 0 && (begun.from ?? NOTHING) === name;
      file = follows ? begun : open(name === NOTHING ? null : name, null);
      if (!follows) file.to = file.from;
    } else if (line.startsWith('+++ ') && file) {
      const name = line.slice(4);
      file.to = name === NOTHING ? null : name;
      file.name = file.to ?? file.from ?? '';
    } else if (hunk) {
      file ??= open(null, null);
      before = Number(hunk[1]);
      after = Number(hunk[3]);
      leftBefore = hunk[2] === undefined ? 1 : Number(hunk[2]);
      leftAfter = hunk[4] === undefined ? 1 : Number(hunk[4]);
      file.lines.push({ kind: 'hunk', text: hunk[5] ?? '' });
    } else if (sign === '\\') file?.lines.push({ kind: 'note', text: line.slice(2) });
    else if (line !== '') (file ??= open(null, null)).lines.push({ kind: 'note', text: line });
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
