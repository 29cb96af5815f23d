// Changes of the vault: the plan is shown as a diff, applied after a yes, and can be taken back.

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, get, post } from './api';
import { nameText } from './event-names';
import { changes, session } from './live';
import { go, noteAddress } from './router';
import { strings } from './strings';
import { isNotePath, sentence, written } from './text';
import { useResource } from './resource';
import type { ChangeReply, OperationReply, UndoState } from './types';
import { Dialog } from './ui/dialog';
import { Diff } from './ui/diff';
import { Button, Failure, Loading, Notices, Path, Time } from './ui/parts';

/** What is said of a change, before it and after it. */
interface Words {
  title: string;
  about?: string;
  button: string;
  done: string | ((reply: ChangeReply) => string);
  /** What an undo is about. */
  subject?: string;
  /** What is shown in place of the diff of the plan. */
  instead?: (plan: ChangeReply) => ComponentChildren;
  /** What is said above the plan, made of the reply. */
  above?: (plan: ChangeReply) => ComponentChildren;
  /** What is said below the plan, made of the reply. */
  below?: (plan: ChangeReply) => ComponentChildren;
  /** What the change says of the plan that was seen. */
  seen?: (plan: ChangeReply) => Record<string, unknown>;
  /** What follows the change; it offers no link to the note then. */
  then?: (reply: ChangeReply) => void;
}

interface Asked extends Words {
  action: string;
  body: Record<string, unknown>;
  plan: ChangeReply | null;
  error: ApiError | null;
}

interface Toast {
  id: number;
  text: string;
  /** The operation that can be undone, or what takes it back otherwise. */
  undo: string | (() => Promise<void>) | null;
  /** The note that can be opened. */
  open: string | null;
  bad: boolean;
}

const asked = signal<Asked | null>(null);
const toasts = signal<Toast[]>([]);
let count = 0;

export const canWrite = () => session.value !== null && !session.value.read_only;

export function say(text: string, options: { undo?: string | (() => Promise<void>) | null; open?: string | null; bad?: boolean } = {}): void {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-2), { id, text, undo: options.undo ?? null, open: options.open ?? null, bad: options.bad ?? false }];
  window.setTimeout(() => dismiss(id), options.undo || options.open ? 12_000 : 7_000);
}

/** The first note that a change made or brought back. */
function broughtBack(reply: ChangeReply): string | null {
  const file = reply.plan?.files.find((file) => file.to?.vault !== undefined && file.from?.vault === undefined);
  const path = file?.to?.vault;
  return path !== undefined && isNotePath(path) ? path : null;
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Plans a change and asks whether to apply it. */
export function ask(action: string, body: Record<string, unknown>, words: Words): void {
  asked.value = { ...words, action, body, plan: null, error: null };
  void plan(asked.value);
}

async function plan(request: Asked): Promise<void> {
  try {
    const reply = await post<ChangeReply>(`actions/${request.action}`, { ...request.body, dry_run: true });
    if (asked.value === request) asked.value = { ...request, plan: changeOf(reply), error: null };
  } catch (error) {
    if (asked.value === request) asked.value = { ...request, error: asError(error) };
  }
}

/** The change in replies that hold it among other fields, and the first of a list of changes. */
function changeOf(reply: ChangeReply | ChangeReply[] | { change: ChangeReply; expect_hash?: string }): ChangeReply {
  if (Array.isArray(reply)) return reply[0] ?? { applied: false };
  if ('change' in reply) return { ...reply.change, ...(reply.expect_hash ? { expect_hash: reply.expect_hash } : {}) };
  return reply;
}

/** How many files a change makes, and how many it changes or moves. */
export function countsOf(reply: ChangeReply): { made: number; changed: number } {
  const files = reply.plan?.files ?? [];
  const made = files.filter((file) => file.from === undefined || file.from === null).length;
  return { made, changed: files.length - made };
}

/** The note that a change made or moved: where it is now. */
export function placeOf(reply: ChangeReply): string | null {
  const files = reply.plan?.files ?? [];
  const file = files.find((file) => file.to?.vault !== undefined && file.to.vault !== file.from?.vault);
  return file?.to?.vault ?? null;
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, { message: String(error) });
}

/** Records a vote, which changes no file and needs no plan. */
export async function vote(name: string, useful: boolean): Promise<void> {
  try {
    await post('actions/vote', { name, useful });
    say(useful ? strings.actions.votedUp : strings.actions.votedDown);
    changes.value += 1;
  } catch (error) {
    say(asError(error).message, { bad: true });
  }
}

/** Asks to undo an operation; `keep` are files that stay as they are. */
export function askUndo(id: string, subject: string, keep: string[] = []): void {
  ask('undo', { id, ...(keep.length > 0 ? { keep } : {}) }, { title: strings.actions.undoTitle(subject), button: strings.actions.undo, done: strings.actions.undone(subject), subject });
}

function ConflictTexts({ error, diff }: { error: ApiError; diff: string | undefined }) {
  return (
    <div class="conflict">
      <Failure error={error} />
      {error.files.map((file) => (
        <div class="two-texts" key={file.path}>
          <section>
            <h3>{strings.conflict.now(file.path)}</h3>
            <pre tabIndex={0} {...written(file.text ?? '')}>{file.text ?? strings.conflict.gone}</pre>
          </section>
          <section>
            <h3>{strings.conflict.planned}</h3>
            {diff ? <Diff diff={diff} planned /> : <p>{strings.diff.nothing}</p>}
          </section>
        </div>
      ))}
    </div>
  );
}

/** Closes the dialog, such as for another one. */
export function closeDialog(): void {
  asked.value = null;
}

/** Says what stands in the way of an undo, in the words of the timeline. */
function UndoRefused({ request, error }: { request: Asked; error: ApiError }) {
  const id = String(request.body['id']);
  const operation = useResource(`refused ${id}`, (signal) => get<OperationReply>(`operations/${encodeURIComponent(id)}`, {}, signal));
  const undo = operation.data?.undo;
  if (!operation.data && !operation.error) return <Loading lines={2} />;
  return undo && !undo.possible && (undo.files?.length ?? 0) > 0 ? <Obstacle id={id} subject={request.subject ?? strings.actions.theChange} undo={undo} files={operation.data?.event.files?.length ?? 0} /> : <Failure error={error} />;
}

/** What stands in the way of an undo, with what can be done. */
export function Obstacle({ id, subject, undo, files }: { id: string; subject: string; undo: UndoState; files: number }) {
  const blocked = undo.files ?? [];
  const later = undo.later ?? [];
  return (
    <div class="obstacle">
      <p>
        <strong>{strings.actions.cannotNow}</strong> {blocked.length === 0 ? sentence(undo.message ?? '') : ''}
      </p>
      <ul class="plain-list">
        {blocked.map(([path, reason]) => (
          <li key={path}>
            <Path text={path} /> {reason}
          </li>
        ))}
      </ul>
      {later.length > 0 ? (
        <>
          <p>{strings.actions.undoFirst(later.length)}</p>
          <ol class="plain-list later">
            {later.map((operation, index) => (
              <li key={operation.id}>
                <a href={`/activity?op_id=${operation.id}`} onClick={closeDialog}>
                  {nameText(operation)}
                </a>{' '}
                <span class="chip">{operation.by ?? strings.activity.commandLine}</span> {operation.tool ? <span class="chip">{operation.tool}</span> : null} <Time at={operation.at} />{' '}
                {!operation.undoable ? (
                  <span class="about">{strings.actions.notUndoable}</span>
                ) : index === 0 && canWrite() ? (
                  <Button small icon="undo" onClick={() => askUndo(operation.id, nameText(operation))}>
                    {strings.actions.undoIt}
                  </Button>
                ) : null}
              </li>
            ))}
          </ol>
        </>
      ) : null}
      {canWrite() && blocked.length > 0 && files > blocked.length ? (
        <Button
          small
          onClick={() =>
            askUndo(
              id,
              subject,
              blocked.map(([path]) => path),
            )
          }
        >
          {strings.actions.keepRest(blocked.length)}
        </Button>
      ) : null}
    </div>
  );
}

/** The dialog that shows the plan of the change that was asked for. */
export function AskDialog() {
  const request = asked.value;
  const [busy, setBusy] = useState(false);
  if (!request) return null;
  const { plan: change, error } = request;
  const empty = change !== null && (change.plan?.files.length ?? 0) === 0 && !change.diff;
  const close = () => {
    asked.value = null;
  };
  const again = () => {
    // The reader has seen the present text: the plan is made for it, not for the one that was shown before.
    const { hash: _, ...body } = request.body;
    const fresh = { ...request, body, plan: null, error: null };
    asked.value = fresh;
    void plan(fresh);
  };
  const apply = async () => {
    setBusy(true);
    try {
      const reply = changeOf(await post<ChangeReply>(`actions/${request.action}`, { ...request.body, ...(change && request.seen?.(change)), ...(change?.expect_hash ? { expect_hash: change.expect_hash } : {}) }));
      asked.value = null;
      say(typeof request.done === 'string' ? request.done : request.done(reply), { undo: /^(undo|redo)/.test(request.action) ? null : (reply.id ?? null), open: request.then ? null : broughtBack(reply) });
      changes.value += 1;
      request.then?.(reply);
    } catch (cause) {
      asked.value = { ...request, error: asError(cause) };
      // A part of it may be done.
      if (request.seen) changes.value += 1;
    }
    setBusy(false);
  };
  return (
    <Dialog
      title={request.title}
      onClose={close}
      wide
      foot={
        <>
          <Button onClick={close}>{strings.cancel}</Button>
          {error ? (
            <Button kind="primary" onClick={again}>
              {error.kind === 'conflict' ? strings.conflict.again : strings.retry}
            </Button>
          ) : (
            <Button kind="primary" onClick={() => void apply()} disabled={busy || !change || empty} autofocus key={change ? 'ready' : 'wait'}>
              {request.button}
            </Button>
          )}
        </>
      }
    >
      {request.about ? <p class="dialog-about">{request.about}</p> : null}
      {error ? request.action === 'undo' && !change ? <UndoRefused request={request} error={error} /> : error.files.length > 0 ? <ConflictTexts error={error} diff={change?.diff} /> : <Failure error={error} /> : null}
      {!change && !error ? <Loading lines={3} label={strings.actions.planning} /> : null}
      {change && !error ? (
        <>
          {/* What stands in place of the diff says more than the notices of a plan of its first part. */}
          {request.instead ? null : <Notices notices={change.notices} />}
          <Notices notices={change.plan?.remarks?.map((remark) => `${remark.path}:${remark.line}: ${remark.message}`)} />
          {request.above?.(change)}
          {request.instead ? request.instead(change) : empty ? request.below ? null : <p>{strings.actions.nothingToDo}</p> : <Diff diff={change.diff ?? ''} planned />}
          {request.below?.(change)}
        </>
      ) : null}
    </Dialog>
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast${toast.bad ? ' bad' : ''}`}>
          <span>{toast.text}</span>
          {toast.open ? (
            <Button
              small
              kind="quiet"
              onClick={() => {
                dismiss(toast.id);
                go(noteAddress(toast.open ?? ''));
              }}
            >
              {strings.actions.open}
            </Button>
          ) : null}
          {toast.undo && canWrite() ? (
            <Button
              small
              kind="quiet"
              onClick={() => {
                const { undo } = toast;
                dismiss(toast.id);
                void (typeof undo === 'function' ? undo() : undoNow(undo ?? ''));
              }}
            >
              {strings.actions.undo}
            </Button>
          ) : null}
          <Button small kind="quiet" icon="close" label={strings.close} onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}

/** Takes back what was just done here; a refusal is shown with its reason. */
async function undoNow(id: string): Promise<void> {
  try {
    await post('actions/undo', { id });
    say(strings.actions.takenBack);
    changes.value += 1;
  } catch {
    askUndo(id, strings.actions.theChange);
  }
}
