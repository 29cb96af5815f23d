// Texts of notes that are being edited. A draft lives until it is saved or discarded, whatever else the page shows.

import { signal } from '@preact/signals';
import { strings } from './strings';

export interface Draft {
  path: string;
  /** The name of the note, for what is said of the draft elsewhere. */
  name: string;
  text: string;
  /** The text of the note that was edited. */
  base: string;
  /** The hash that the note had then. */
  hash: string;
}

export const drafts = signal<ReadonlyMap<string, Draft>>(new Map());

/** A text with the line ends that a field gives. The server keeps those of the note. */
export const fieldText = (text: string): string => text.replace(/\r\n?/g, '\n');

export const isDirty = (draft: Draft | undefined): draft is Draft => draft !== undefined && draft.text !== draft.base;

export function keepDraft(draft: Draft): void {
  drafts.value = new Map([...drafts.value, [draft.path, draft]]);
}

export function dropDraft(path: string): void {
  const rest = new Map(drafts.value);
  if (rest.delete(path)) drafts.value = rest;
}

// A browser asks before it leaves a page with a draft.
window.addEventListener('beforeunload', (event) => {
  if (![...drafts.value.values()].some(isDirty)) return;
  event.preventDefault();
  // Older browsers ask only then.
  event.returnValue = strings.editor.unsaved;
});
