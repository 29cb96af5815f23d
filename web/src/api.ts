// Calls of the API. Every error becomes an ApiError that says what is wrong and what to do.

import type { ConflictFile, FolderNote } from './types';
import { strings } from './strings';

export class ApiError extends Error {
  readonly kind: string;
  readonly hint: string | null;
  readonly status: number;
  readonly utf16: { start: number; end: number } | null;
  readonly files: ConflictFile[];
  /** The note that has a name already. */
  readonly taken: FolderNote | null;

  constructor(status: number, body: { taken?: FolderNote; kind?: string; message?: string; hint?: string | null; utf16?: { start: number; end: number }; files?: ConflictFile[] }) {
    super(body.message ?? strings.errors.unknown(status));
    this.status = status;
    this.kind = body.kind ?? 'internal';
    this.hint = body.hint ?? null;
    this.utf16 = body.utf16 ?? null;
    this.files = body.files ?? [];
    this.taken = body.taken ?? null;
  }
}

/** The titles that replies had, by path. */
export const knownTitles = new Map<string, string>();

type Value = string | number | boolean | null | undefined;
export type Parameters = Record<string, Value | readonly string[]>;

export function address(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) for (const item of value as readonly string[]) query.append(name, item);
    else if (value !== null && value !== undefined && value !== '' && value !== false) query.append(name, value === true ? '1' : String(value));
  }
  const text = query.toString();
  return `/api/v1/${path}${text ? `?${text}` : ''}`;
}

async function call<T>(url: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: 'same-origin', ...init });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw new ApiError(0, { kind: 'offline', message: strings.errors.offline, hint: strings.errors.offlineHint });
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const error = (body as { error?: object } | null)?.error ?? {};
    throw new ApiError(response.status, error);
  }
  if (body === null) throw new ApiError(response.status, { message: strings.errors.notJson });
  const { titles } = body as { titles?: Record<string, string> | string[] };
  if (titles && !Array.isArray(titles)) for (const [path, title] of Object.entries(titles)) knownTitles.set(path, title);
  return body as T;
}

export function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  return call<T>(address(path, parameters), signal ? { signal } : {});
}

function send<T>(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return call<T>(address(path), { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), ...(signal ? { signal } : {}) });
}

export const post = <T>(path: string, body: unknown, signal?: AbortSignal) => send<T>('POST', path, body, signal);
export const put = <T>(path: string, body: unknown) => send<T>('PUT', path, body);

/** The address of a file of the vault as it is. */
export function rawAddress(path: string): string {
  return `/api/v1/raw/${path.split('/').map(encodeURIComponent).join('/')}`;
}
