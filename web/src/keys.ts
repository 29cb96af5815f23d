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

const views: Record<string, string> = { s: '/', g: '/graph', m: '/memory', a: '/activity', h: '/health', t: '/status' };
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

/** Puts the cursor into the search field of the view, or goes to the search page. */
export function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>('[data-search-field]');
  if (field) {
    field.focus();
    field.select();
  } else go('/');
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  const field = isField(event.target);
  if (event.key === 'Escape' && field) {
    (event.target as HTMLElement).blur();
    event.preventDefault();
    return;
  }
  if (field || (!shortcuts.value && event.key.length === 1)) return;
  for (const handler of [...handlers].reverse()) {
    if (handler.current(event)) {
      event.preventDefault();
      return;
    }
  }
  if (goPressed && event.timeStamp - goPressed < 1200) {
    goPressed = 0;
    const view = views[event.key];
    if (view) {
      event.preventDefault();
      go(view);
      return;
    }
  }
  switch (event.key) {
    case 'g':
      goPressed = event.timeStamp;
      break;
    case '/':
      focusSearch();
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
