// The keys of the page. Views add their own; a key that is typed into a field is the field's.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { go, goBack } from './router';

export const helpOpen = signal(false);

const STORED = 'sidenote-keys';

/** Whether single keys act; readers who speak to their computer may turn them off. */
export const shortcuts = signal(readShortcuts());

function readShortcuts(): boolean {
  try {
    return window.localStorage.getItem(STORED) !== 'off';
  } catch {
    return true;
  }
}

export function setShortcuts(on: boolean): void {
  shortcuts.value = on;
  try {
    if (on) window.localStorage.removeItem(STORED);
    else window.localStorage.setItem(STORED, 'off');
  } catch {
    // Without storage the choice holds until the page is closed.
  }
}

type Handler = (event: KeyboardEvent) => boolean | void;

const handlers: { current: Handler }[] = [];

/** Handles keys while the component is shown; the handler returns true for a key that it took. */
export function useKeys(handler: Handler): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    handlers.push(latest);
    return () => {
      handlers.splice(handlers.indexOf(latest), 1);
    };
  }, []);
}

const views: Record<string, string> = { s: '/', n: '/notes', d: '/day', k: '/tasks', g: '/graph', m: '/memory', a: '/activity', r: '/review', h: '/health', t: '/status' };
let goPressed = 0;

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'range'].includes(target.type));
}

/** Moves the focus among the items of the view: links and buttons with `data-item`. */
export function moveFocus(step: number): boolean {
  const items = [...document.querySelectorAll<HTMLElement>('[data-item]')].filter((item) => item.offsetParent !== null);
  if (items.length === 0) return false;
  const focused = document.activeElement;
  let index = items.findIndex((item) => item === focused || item.closest('[data-item-row]')?.contains(focused));
  index = index < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, index + step));
  const item = items[index];
  item?.focus();
  item?.closest('[data-item-row]')?.scrollIntoView({ block: 'nearest' });
  return true;
}

/** Grows with each wish to have the cursor in the field of the search page, which fulfils it when it is shown. */
export const searchWanted = signal(0);

/** What is typed between the wish and the moment when the field is shown, with the time until which that is kept. */
let early: { text: string; until: number } | null = null;
const EARLY = 2000;

/** Puts the cursor into the search field, on the search page. */
export function openSearch(): void {
  const field = document.querySelector<HTMLInputElement>('[data-search-field]');
  if (field) {
    field.focus();
    field.select();
    return;
  }
  early = { text: '', until: performance.now() + EARLY };
  searchWanted.value += 1;
  if (!['/', '/search'].includes(window.location.pathname)) go('/');
}

/** Returns what was typed before the search field was shown. */
export function takeEarlyText(): string {
  const text = early?.text ?? '';
  early = null;
  return text;
}

/** Puts the cursor into the field with which the view narrows what it shows. */
function focusFilter(): boolean {
  const field = document.querySelector<HTMLInputElement>('[data-filter-field]');
  field?.focus();
  field?.select();
  return field !== null;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  if (early && event.timeStamp < early.until && event.key.length === 1) {
    early.text += event.key;
    event.preventDefault();
    return;
  }
  const field = isField(event.target);
  if (event.key === 'Escape' && field) {
    (event.target as HTMLElement).blur();
    event.preventDefault();
    return;
  }
  if (field || (!shortcuts.value && event.key.length === 1)) return;
  // The second key of a pair is not one of the view, which may mean a decision by it.
  const view = goPressed && event.timeStamp - goPressed < 1200 ? views[event.key] : undefined;
  goPressed = 0;
  if (view) {
    event.preventDefault();
    go(view);
    return;
  }
  for (const handler of [...handlers].reverse()) {
    if (handler.current(event)) {
      event.preventDefault();
      return;
    }
  }
  switch (event.key) {
    case 'g':
      goPressed = event.timeStamp;
      break;
    case '/':
      openSearch();
      break;
    case 'f':
      if (!focusFilter()) return;
      break;
    case '?':
      helpOpen.value = true;
      break;
    case 'j':
      if (!moveFocus(1)) return;
      break;
    case 'k':
      if (!moveFocus(-1)) return;
      break;
    case 'Escape':
      if (!window.location.pathname.startsWith('/note/')) return;
      goBack();
      break;
    default:
      return;
  }
  event.preventDefault();
}

export function startKeys(): void {
  document.addEventListener('keydown', onKey);
}
