// What the server says while the page is open: a new generation of the index, and vectors that are made.

import { signal } from '@preact/signals';
import { ApiError, get } from './api';
import type { Session } from './types';

export const session = signal<Session | null>(null);
export const sessionError = signal<ApiError | null>(null);
/** Whether the server answers. */
export const online = signal(true);
/** Grows with each change; views load again what they show. */
export const changes = signal(0);
export const vectors = signal<{ pending: number; vectors?: number } | null>(null);

/** How many proposals wait; null until the server said so. */
export const waiting = signal<number | null>(null);

/** The connection to the server, in the one tab that has it. */
let source: EventSource | null = null;
let retry: number | undefined;
let instance: string | null = null;
let generation: number | null = null;

/** How far the server's clock is from the browser's, in milliseconds. */
let skew = 0;

/** The time by the server's clock, which can be fixed. */
export function now(): number {
  return Date.now() + skew;
}

export async function loadSession(): Promise<void> {
  try {
    const reply = await get<Session>('session');
    const difference = Date.parse(reply.now) - Date.now();
    skew = Math.abs(difference) > 120_000 ? difference : 0;
    session.value = reply;
    sessionError.value = null;
    online.value = true;
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) sessionError.value = error;
    else online.value = false;
  }
}

function changed(): void {
  changes.value += 1;
}

interface Hello {
  /** Null where the server cannot read the state of the index. */
  generation: number | null;
  pending: number | null;
  /** The proposals that wait. */
  proposals: number | null;
  instance: string;
}

function greet(hello: Hello): void {
  const restarted = instance !== null && instance !== hello.instance;
  const missed = generation !== null && generation !== hello.generation;
  const returned = !online.value;
  instance = hello.instance;
  generation = hello.generation;
  if (hello.pending !== null) vectors.value = { pending: hello.pending };
  waiting.value = hello.proposals;
  online.value = true;
  if (restarted || returned) void loadSession();
  if (restarted || missed || returned) changed();
}

/** What the tab with the connection tells the others. A tab that opens asks for the state. */
type Message =
  | { kind: 'ask' }
  | { kind: 'hello'; hello: Hello }
  | { kind: 'index'; generation: number }
  | { kind: 'journal' }
  | { kind: 'proposals'; waiting: number | null }
  | { kind: 'vectors'; vectors: { pending: number; vectors: number } }
  | { kind: 'lost' };

const CHANNEL = 'sidenote-events';
const tabs = new BroadcastChannel(CHANNEL);
/** What the server said when the connection began, in the tab that has it. */
let hello: Hello | null = null;
/** Ends the wait for the connection, and gives it up. Null while this tab does not listen. */
let leave: (() => void) | null = null;

function hear(message: Message): void {
  switch (message.kind) {
    case 'ask':
      if (source !== null && hello !== null) tabs.postMessage({ kind: 'hello', hello: { ...hello, generation, proposals: waiting.value } } satisfies Message);
      break;
    case 'hello':
      greet(message.hello);
      break;
    case 'index':
      generation = message.generation;
      changed();
      break;
    case 'journal':
      changed();
      break;
    case 'proposals':
      waiting.value = message.waiting;
      changed();
      break;
    case 'vectors':
      vectors.value = message.vectors;
      break;
    case 'lost':
      online.value = false;
      break;
  }
}

tabs.onmessage = (event) => {
  if (leave !== null) hear(event.data as Message);
};

/** Tells this tab and the others. */
function tell(message: Message): void {
  hear(message);
  tabs.postMessage(message);
}

function connect(): void {
  source?.close();
  window.clearTimeout(retry);
  source = new EventSource('/api/v1/events');
  const data = <T>(event: Event) => JSON.parse((event as MessageEvent<string>).data) as T;
  source.addEventListener('hello', (event) => {
    hello = data<Hello>(event);
    tell({ kind: 'hello', hello });
  });
  source.addEventListener('index', (event) => tell({ kind: 'index', generation: data<{ generation: number }>(event).generation }));
  source.addEventListener('journal', () => tell({ kind: 'journal' }));
  source.addEventListener('proposals', (event) => tell({ kind: 'proposals', waiting: data<{ waiting: number | null }>(event).waiting }));
  source.addEventListener('vectors', (event) => tell({ kind: 'vectors', vectors: data<{ pending: number; vectors: number }>(event) }));
  source.onerror = () => {
    source?.close();
    tell({ kind: 'lost' });
    window.clearTimeout(retry);
    retry = window.setTimeout(reconnect, 700);
  };
}

async function reconnect(): Promise<void> {
  await loadSession();
  if (online.value || sessionError.value) {
    if (sessionError.value?.status === 401) {
      retry = window.setTimeout(reconnect, 3000);
      return;
    }
    online.value = false;
    connect();
  } else retry = window.setTimeout(reconnect, 700);
}

/**
 * Listens to the server, and connects again after it was away. One tab has the connection and tells the others, since a browser
 * allows six to a server: with one for each tab, the views of the seventh tab would wait for ever.
 */
export function listen(): void {
  if (leave !== null) return;
  const waiting = new AbortController();
  let free: (() => void) | undefined;
  leave = () => {
    leave = null;
    waiting.abort();
    source?.close();
    source = null;
    window.clearTimeout(retry);
    free?.();
  };
  if (!('locks' in navigator)) {
    // Beyond this machine, without encryption, a page has no locks.
    connect();
    return;
  }
  const held = () =>
    new Promise<void>((resolve) => {
      free = resolve;
      connect();
    });
  navigator.locks.request(CHANNEL, { signal: waiting.signal }, held).catch((error: unknown) => {
    // Leaving while another tab has the connection ends the wait.
    if (!(error instanceof DOMException && error.name === 'AbortError')) throw error;
  });
  tabs.postMessage({ kind: 'ask' } satisfies Message);
}

/** Milliseconds after which a tab that is not seen gives the connection to another one. */
const HIDDEN_AFTER = 20_000;
let hidden: number | undefined;

document.addEventListener('visibilitychange', () => {
  window.clearTimeout(hidden);
  if (document.visibilityState === 'hidden') {
    hidden = window.setTimeout(() => leave?.(), HIDDEN_AFTER);
  } else if (leave === null) listen();
  else if (!online.value && source !== null) {
    window.clearTimeout(retry);
    void reconnect();
  }
});

// A page that a browser keeps for the back button would keep the connection, too.
window.addEventListener('pagehide', () => leave?.());
window.addEventListener('pageshow', (event) => {
  if (event.persisted) listen();
});
