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
  instance: string;
}

function greet(hello: Hello): void {
  const restarted = instance !== null && instance !== hello.instance;
  const missed = generation !== null && generation !== hello.generation;
  const returned = !online.value;
  instance = hello.instance;
  generation = hello.generation;
  if (hello.pending !== null) vectors.value = { pending: hello.pending };
  online.value = true;
  if (restarted || returned) void loadSession();
  if (restarted || missed || returned) changed();
}

/** Listens to the server, and connects again after it was away. */
export function listen(): void {
  source?.close();
  window.clearTimeout(retry);
  source = new EventSource('/api/v1/events');
  const data = <T>(event: Event) => JSON.parse((event as MessageEvent<string>).data) as T;
  source.addEventListener('hello', (event) => greet(data<Hello>(event)));
  source.addEventListener('index', (event) => {
    const message = data<{ generation: number }>(event);
    generation = message.generation;
    changed();
  });
  source.addEventListener('journal', changed);
  source.addEventListener('vectors', (event) => {
    vectors.value = data<{ pending: number; vectors: number }>(event);
  });
  source.onerror = () => {
    online.value = false;
    source?.close();
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
    listen();
  } else retry = window.setTimeout(reconnect, 700);
}

/** Milliseconds after which a tab that is not seen gives up its connection: browsers allow only six to a server. */
const HIDDEN_AFTER = 20_000;
let hidden: number | undefined;

document.addEventListener('visibilitychange', () => {
  window.clearTimeout(hidden);
  if (document.visibilityState === 'hidden') {
    hidden = window.setTimeout(() => {
      source?.close();
      source = null;
      window.clearTimeout(retry);
    }, HIDDEN_AFTER);
  } else if (!online.value) {
    window.clearTimeout(retry);
    void reconnect();
  } else if (source === null) listen();
});
