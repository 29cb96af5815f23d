// Positions in texts, unified diffs, the words that differ, and names of paths.

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

type ChangedLine = Exclude<DiffLine, { text: string; kind: 'hunk' | 'note' }>;

/** A row of a difference in two columns. `text` is that of a row across both. */
export interface DiffRow {
  before: ChangedLine | null;
  after: ChangedLine | null;
  text?: string;
}

/** The lines of a difference as rows: each removed line beside the added one that stands for it. */
export function pairedLines(lines: readonly DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let removed: ChangedLine[] = [];
  let added: ChangedLine[] = [];
  let notes: string[] = [];
  const end = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index++) rows.push({ before: removed[index] ?? null, after: added[index] ?? null });
    rows.push(...notes.map((text) => ({ before: null, after: null, text })));
    removed = [];
    added = [];
    notes = [];
  };
  for (const line of lines) {
    if (line.kind === 'removed') {
      if (added.length > 0) end();
      removed.push(line);
    } else if (line.kind === 'added') added.push(line);
    // A remark about a line that was removed stands before the one that was added for it.
    else if (line.kind === 'note') notes.push(line.text);
    else {
      end();
      rows.push(line.kind === 'same' ? { before: line, after: line } : { before: null, after: null, text: line.text });
    }
  }
  end();
  return rows;
}

/** Splits a text into words, spaces and signs. Times, dates and numbers such as `02:15` are one word. */
export function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+(?:[.:,/'’-][\p{L}\p{N}_]+)*|\s+|./gsu) ?? [];
}

/** The most words of a text that are compared one by one. */
const MOST_WORDS = 1500;

/** Compares two texts word by word: the parts of each, marked where the other one does not have them. */
export function wordDifferences(a: string, b: string): [{ text: string; marked: boolean }[], { text: string; marked: boolean }[]] {
  const one = wordsOf(a).slice(0, MOST_WORDS);
  const other = wordsOf(b).slice(0, MOST_WORDS);
  // The longest common subsequence, from the end to the beginning.
  const width = other.length + 1;
  const length = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      length[i * width + j] = one[i] === other[j] ? (length[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(length[(i + 1) * width + j] ?? 0, length[i * width + j + 1] ?? 0);
    }
  }
  const left: { text: string; marked: boolean }[] = [];
  const right: { text: string; marked: boolean }[] = [];
  const add = (list: typeof left, text: string, marked: boolean) => {
    const last = list[list.length - 1];
    // A space between two words that differ belongs to them.
    if (last && (last.marked === marked || (last.marked && /^\s+$/.test(text) && marked))) last.text += text;
    else list.push({ text, marked: marked && text.trim() !== '' });
  };
  let i = 0;
  let j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      add(left, one[i++] ?? '', false);
      add(right, other[j++] ?? '', false);
    } else if (j >= other.length || (i < one.length && (length[(i + 1) * width + j] ?? 0) >= (length[i * width + j + 1] ?? 0))) add(left, one[i++] ?? '', true);
    else add(right, other[j++] ?? '', true);
  }
  return [left, right];
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
        const before = wordsOf(a.text);
        const after = wordsOf(b.text);
        let start = 0;
        while (start < before.length && start < after.length && before[start] === after[start]) start++;
        let end = 0;
        while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
        if (start + end > 0) {
          const length = (words: string[]) => words.reduce((sum, word) => sum + word.length, 0);
          const same = length(before.slice(0, start));
          const rest = length(before.slice(before.length - end));
          a.changed = [same, a.text.length - rest];
          b.changed = [same, b.text.length - rest];
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

/** The name of a note as every view shows it: its title, or its file name where a reply has no title. */
export function shownName(path: string, title?: string | null): string {
  return title || fileName(path);
}

/** A name with slashes as what stands before its last part, and that part, which tells it from its neighbours. */
export function splitName(name: string): [before: string, last: string] {
  const end = name.replace(/\/+$/, '').lastIndexOf('/') + 1;
  return [name.slice(0, end), name.slice(end)];
}

/** Letters of the scripts that are written from right to left. */
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Samaritan}\p{Script=Mandaic}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}]/u;

/** The direction of a text by its first letter, or null where it has none. */
export function directionOf(text: string): 'ltr' | 'rtl' | null {
  const letter = /\p{L}/u.exec(text)?.[0];
  return letter === undefined ? null : RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
}

/** An ideograph or a syllable says about as much as this many letters of other scripts. */
const LETTERS_IN_A_SYLLABLE = 2;
/** No Japanese sentence has this many ideographs and no kana. */
const IDEOGRAPHS_OF_CHINESE = 20;
/** The language of a long text is that of its beginning. */
const LONGEST_SAMPLE = 2000;

type Language = 'ja' | 'ko' | 'zh';

/**
 * The language of a text, where lines break by it and the script tells it: Chinese, Japanese or Korean. A few ideographs
 * may be of any; they have the language of what is around them.
 */
export function languageOf(text: string, around: Language | null = null): Language | null {
  const sample = text.slice(0, LONGEST_SAMPLE);
  const count = (letter: RegExp) => sample.match(letter)?.length ?? 0;
  const [hangul, kana, ideographs] = [count(/\p{Script=Hangul}/gu), count(/[\p{Script=Hiragana}\p{Script=Katakana}]/gu), count(/\p{Script=Han}/gu)];
  const all = hangul + kana + ideographs;
  if (all === 0 || all * LETTERS_IN_A_SYLLABLE < count(/\p{L}/gu) - all) return null;
  // Korean may have ideographs. Chinese has a kana at most in a name.
  if (hangul * 4 > all) return 'ko';
  if (kana * 20 > all) return 'ja';
  return ideographs >= IDEOGRAPHS_OF_CHINESE ? 'zh' : around;
}

/** The attributes of what shows a text of a note: its direction, and its language as far as the script tells it. */
export function written(text: string, around: Language | null = null): { dir: 'auto'; lang?: Language } {
  const lang = languageOf(text, around);
  return lang ? { dir: 'auto', lang } : { dir: 'auto' };
}

/** Letters that are as wide as two Latin ones. */
const WIDE = /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303F\uFF01-\uFF60]/gu;

/** A text of one line that is at most as wide as so many Latin letters. It is cut between letters as a reader sees them. */
export function shortened(text: string, most: number): string {
  const widthOf = (part: string) => part.length + (part.match(WIDE)?.length ?? 0);
  if (widthOf(text) <= most) return text;
  let width = 1; // the ellipsis
  for (const { segment, index } of new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text)) {
    // A letter with its marks, or an emoji, has many characters, and is no wider than two.
    width += Math.min(2, widthOf(segment));
    if (width > most) return `${text.slice(0, index).trimEnd()}…`;
  }
  return text;
}

export function folderOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end < 0 ? '' : path.slice(0, end);
}

export function isNotePath(path: string): boolean {
  return /\.(md|canvas)$/i.test(path) && !path.startsWith('.trash/');
}


/** A message as a sentence: with a capital letter, but for names in code, paths and commands. */
export function sentence(text: string): string {
  return /^[a-z]+[ ,;:]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** The words of a line of Markdown: links by what they show, without the signs of emphasis, code and days. */
export function plainInline(text: string): string {
  return text
    .replace(/!?\[\[([^\]|]+)(?:\|([^\]]+))?\]\]/g, (_, target: string, shown?: string) => shown ?? target.split('#')[0]?.split('/').pop() ?? target)
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replace(/[📅📆🗓]\uFE0F?\s*\d{4}-\d{2}-\d{2}/gu, '')
    .replace(/[[(]?\bdue::\s*\d{4}-\d{2}-\d{2}[\])]?/gi, '')
    .replace(/(\*\*|__|==|~~|`)/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
