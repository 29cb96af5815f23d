// The address of the page, which says what is shown: a path for the view and a query for its state.

import { signal } from '@preact/signals';

export interface Location {
  path: string;
  query: URLSearchParams;
  hash: string;
}

function read(): Location {
  return { path: window.location.pathname, query: new URLSearchParams(window.location.search), hash: window.location.hash.slice(1) };
}

export const location = signal<Location>(read());

/** Whether the present address was reached by a step back or forward. */
export let cameBack = false;

/** How many addresses of the page were shown before this one, so that a step back stays in the page. */
let depth = 0;

window.addEventListener('popstate', () => {
  depth = Math.max(0, depth - 1);
  cameBack = true;
  location.value = read();
});

/** Goes back to where the reader came from, or to the search page. */
export function goBack(): void {
  if (depth > 0) window.history.back();
  else go('/');
}

/** Shows an address of the page. `replace` leaves no entry in the history. */
export function go(to: string, options: { replace?: boolean; keepScroll?: boolean } = {}): void {
  const now = window.location.pathname + window.location.search + window.location.hash;
  if (to === now) return;
  if (options.replace) window.history.replaceState(null, '', to);
  else {
    window.history.pushState(null, '', to);
    depth += 1;
  }
  cameBack = false;
  location.value = read();
  if (!options.keepScroll && !location.value.hash) window.scrollTo(0, 0);
}

/** Changes parameters of the present address; `null` removes one. */
export function setQuery(changes: Record<string, string | readonly string[] | null>, options: { replace?: boolean } = { replace: true }): void {
  const query = new URLSearchParams(window.location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    if (Array.isArray(value)) for (const item of value) query.append(name, item);
    else if (typeof value === 'string' && value !== '') query.set(name, value);
  }
  const text = query.toString();
  go(window.location.pathname + (text ? `?${text}` : ''), { ...options, keepScroll: true });
}

export function withQuery(path: string, parameters: Record<string, string | number | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The address of a note. A line scrolls to the block at it. */
export function noteAddress(path: string, options: { line?: number; tab?: string } = {}): string {
  return withQuery(`/note/${path.split('/').map(encodeURIComponent).join('/')}`, { line: options.line, tab: options.tab });
}

/** The name of the note that an address of the view shows. */
export function noteOfAddress(path: string): string {
  return path
    .slice('/note/'.length)
    .split('/')
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    })
    .join('/');
}

/** Follows links of the page without loading it anew. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download')) return;
  const href = link.getAttribute('href');
  if (!href || href.startsWith('/api/') || href.startsWith('/assets/')) return;
  const url = new URL(link.href, window.location.href);
  if (url.origin !== window.location.origin) return;
  if (href.startsWith('#')) {
    event.preventDefault();
    const target = document.getElementById(decodeURIComponent(href.slice(1)));
    if (href !== '#main') go(window.location.pathname + window.location.search + href, { replace: true, keepScroll: true });
    target?.scrollIntoView();
    target?.focus({ preventScroll: true });
    return;
  }
  event.preventDefault();
  go(url.pathname + url.search + url.hash);
}
