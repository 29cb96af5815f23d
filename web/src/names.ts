// The names of notes. Replies that have paths alone get the titles of these, so that a note has one name in all views.

import { signal } from '@preact/signals';
import { get, knownTitles } from './api';
import { changes } from './live';
import { fileName, isNotePath, shownName } from './text';
import type { SearchReply } from './types';

/** The titles that are known, by path. */
const titles = signal<ReadonlyMap<string, string>>(new Map());
/** The paths that were asked for since the last change of the index. */
const asked = new Set<string>();
let wanted: string[] = [];
let generation = 0;

// The views ask again after a change, and their replies have the titles of then.
changes.subscribe(() => knownTitles.clear());

/** The most paths in one query. */
const AT_ONCE = 40;

/** The titles of notes by their paths. A note that the index does not have is left out. */
export async function titlesOf(paths: readonly string[], abort?: AbortSignal): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  // A path with a line break or its kin cannot be written in a query.
  const named = paths.filter((path) => !/\p{Cc}/u.test(path));
  for (let start = 0; start < named.length; start += AT_ONCE) {
    // Other terms of paths would also select what has the path as a part of its own.
    const exact = named.slice(start, start + AT_ONCE).map((path) => path.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
    const q = `path:/^(?:${exact.join('|')})$/`;
    const reply = await get<SearchReply>('search', { q, mode: 'bm25', all: true, limit: 2 * AT_ONCE }, abort);
    for (const result of reply.results) found.set(result.path, result.title);
  }
  return found;
}

/** Asks at once for the titles of all notes that a view shows. */
async function ask(): Promise<void> {
  const paths = wanted;
  wanted = [];
  try {
    const found = await titlesOf(paths);
    if (found.size > 0) titles.value = new Map([...titles.value, ...found]);
  } catch {
    // Notes without a title are shown with the names of their files; the next change asks again.
    for (const path of paths) asked.delete(path);
  }
}

/** The name of a note that a view shows. Where its reply has no title, the title is looked up, and the view follows. */
export function nameOf(path: string, title?: string | null): string {
  if (title || !isNotePath(path)) return shownName(path, title);
  const known = knownTitles.get(path);
  if (known) return shownName(path, known);
  if (generation !== changes.value) {
    generation = changes.value;
    asked.clear();
  }
  if (!asked.has(path)) {
    asked.add(path);
    if (wanted.push(path) === 1) queueMicrotask(() => void ask());
  }
  return titles.value.get(path) || fileName(path);
}
