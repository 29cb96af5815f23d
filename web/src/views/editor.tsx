// The editor of a note: its whole source beside what it will look like. What is typed is lost in no case.

import { useEffect, useRef, useState } from 'preact/hooks';
import { asError, placeOf, say } from '../actions';
import { ApiError, get, post } from '../api';
import { drafts, dropDraft, fieldText, isDirty, keepDraft, type Draft } from '../drafts';
import { useKeys } from '../keys';
import { changes } from '../live';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import { shownName, written } from '../text';
import type { ChangeReply, Note } from '../types';
import { Dialog } from '../ui/dialog';
import { Diff } from '../ui/diff';
import { Button, Failure, Loading, Notices, TabPanel, Tabs } from '../ui/parts';
import { Rendered, useWide } from './note';

const words = strings.editor;
/** Milliseconds without a key after which the preview is made. */
const PAUSE = 250;
const PANES = ['text', 'preview', 'changes'] as const;
type Pane = (typeof PANES)[number];

/** A value that follows another one when that one rests. */
function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(value), PAUSE);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested;
}

/** What the server makes of a text; the former answer stays until the next one. */
function useAnswer<T>(text: string, turn: unknown, load: (text: string, signal: AbortSignal) => Promise<T>): { data: T | null; error: ApiError | null } {
  const [answer, setAnswer] = useState<{ data: T | null; error: ApiError | null }>({ data: null, error: null });
  const rested = useRested(text);
  useEffect(() => {
    const controller = new AbortController();
    load(rested, controller.signal).then(
      (data) => controller.signal.aborted || setAnswer({ data, error: null }),
      (cause: unknown) => controller.signal.aborted || setAnswer((old) => ({ ...old, error: asError(cause) })),
    );
    return () => controller.abort();
  }, [rested, turn]);
  return answer;
}

function Preview({ path, text }: { path: string; text: string }) {
  const page = useAnswer(text, changes.value, (text, signal) => post<Note>('preview', { name: path, text }, signal));
  return (
    <>
      {page.error ? <Failure error={page.error} /> : null}
      {page.data?.frontmatter_error ? <p class="failure-text">{page.data.frontmatter_error}</p> : null}
      <Notices notices={page.data?.notices} />
      {!page.data && !page.error ? <Loading lines={8} label={words.rendering} /> : null}
      {page.data ? <Rendered note={page.data} preview /> : null}
      {page.data?.html.trim() === '' ? <p class="about">{strings.note.emptyNote}</p> : null}
    </>
  );
}

function Changes({ path, text }: { path: string; text: string }) {
  const plan = useAnswer(text, changes.value, (text, signal) => post<ChangeReply>('actions/write', { name: path, text, dry_run: true }, signal));
  if (plan.error) return <Failure error={plan.error} />;
  if (!plan.data) return <Loading lines={3} label={strings.actions.planning} />;
  return plan.data.diff ? <Diff diff={plan.data.diff} planned /> : <p class="about">{words.nothingChanged}</p>;
}

/** Both texts of a note that changed while it was edited, and what can be done. */
function Conflict({ draft, now, onKeep, onTake }: { draft: Draft; now: { hash: string; text: string }; onKeep: () => void; onTake: () => void }) {
  return (
    <section class="conflict editor-conflict" aria-label={words.conflictTitle}>
      <div class="failure" role="alert">
        <div>
          <h2 class="failure-title">{words.conflictTitle}</h2>
          <p>{words.conflictAbout}</p>
        </div>
      </div>
      <div class="two-texts">
        <section>
          <h3>{strings.conflict.now(draft.path)}</h3>
          <pre tabIndex={0} {...written(now.text)}>
            {now.text}
          </pre>
        </section>
        <section>
          <h3>{words.yours}</h3>
          <pre tabIndex={0} {...written(draft.text)}>
            {draft.text}
          </pre>
        </section>
      </div>
      <div class="row-buttons">
        <Button onClick={onKeep}>{words.keepMine}</Button>
        <Button onClick={onTake}>{words.takeTheirs}</Button>
      </div>
    </section>
  );
}

/** Edits a note. `note` is the note as it is now; none when it is gone, and only a draft of it is left. */
export default function Editor({ note, path }: { note: Note | null; path: string }) {
  const text = fieldText(note?.text ?? '');
  const fresh: Draft | null = note ? { path, name: shownName(path, note.title), text, base: text, hash: note.hash } : null;
  const draft = drafts.value.get(path) ?? fresh;
  return draft ? <Editing key={path} note={note} fresh={fresh} draft={draft} /> : null;
}

function Editing({ note, fresh, draft }: { note: Note | null; fresh: Draft | null; draft: Draft }) {
  const { path } = draft;
  const name = fresh?.name ?? draft.name;
  /** Hashes of the note before it was saved here, which it has until it is loaded again. */
  const passed = useRef(new Set<string>());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const [leaving, setLeaving] = useState(false);
  const [saved, setSaved] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const wide = useWide();
  const asked = location.value.query.get('pane') as Pane | null;
  const chosen: Pane = asked && PANES.includes(asked) ? asked : 'text';
  const pane: Pane = wide && chosen === 'text' ? 'preview' : chosen;
  const dirty = isDirty(draft);

  useEffect(() => {
    document.title = strings.pageTitle(words.title(name));
  }, [name]);
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
    field.current?.setSelectionRange(0, 0);
  }, []);
  // Whether the note can be written at all is said before anything is typed.
  useEffect(() => {
    if (!note) return;
    const controller = new AbortController();
    post('actions/write', { name: path, text: draft.text, dry_run: true }, controller.signal).catch((cause: unknown) => {
      const found = asError(cause);
      if (!controller.signal.aborted && found.kind !== 'offline' && found.kind !== 'not-found') setRefused(found);
    });
    return () => controller.abort();
  }, [path]);
  // A text that was not changed follows the note, and one that the note has now is no draft any more.
  useEffect(() => {
    // An effect runs after the view was drawn, and something may have been typed since.
    const now = drafts.peek().get(path);
    if (!fresh || !now || passed.current.has(fresh.hash)) return;
    // From now on, a former hash is that of a note that was changed back.
    passed.current.clear();
    if (now.hash === fresh.hash) return;
    if (!isDirty(now) || now.text === fresh.text) dropDraft(path);
  }, [note?.hash]);

  const isOther = fresh !== null && dirty && draft.hash !== fresh.hash && draft.text !== fresh.text && !passed.current.has(fresh.hash);
  const conflict = isOther && note ? { hash: note.hash, text: note.text ?? '' } : null;

  const type = (text: string) => {
    setSaved(false);
    const now = drafts.peek().get(path) ?? draft;
    if (text === now.base && now.hash === fresh?.hash) dropDraft(path);
    else keepDraft({ ...now, name, text });
  };
  const leave = () => {
    dropDraft(path);
    setLeaving(false);
    setQuery({ edit: null, pane: null }, { replace: true });
  };
  const close = () => {
    if (isDirty(drafts.peek().get(path))) setLeaving(true);
    else leave();
  };
  const save = async () => {
    const now = drafts.peek().get(path);
    if (busy || conflict || !isDirty(now)) return;
    setBusy(true);
    setError(null);
    try {
      const reply = await post<ChangeReply>('actions/write', { name: path, hash: now.hash, text: now.text });
      const after = reply.hash ?? now.hash;
      if (after !== now.hash) passed.current.add(now.hash);
      const typed = drafts.peek().get(path);
      // What was typed meanwhile is a draft of what was saved.
      if (typed) keepDraft({ ...typed, base: now.text, hash: after });
      setSaved(true);
      say(words.saved(name), { undo: reply.id ?? null });
      changes.value += 1;
    } catch (cause) {
      const found = asError(cause);
      setError(found);
      // The view shows the note as it is now, with both texts.
      if (found.kind === 'conflict') {
        passed.current.clear();
        changes.value += 1;
      }
    }
    setBusy(false);
  };
  const makeAgain = async () => {
    setBusy(true);
    setError(null);
    try {
      // A title at the root of the vault is told apart from one without a folder.
      const title = path.replace(/\.md$/i, '');
      for (const dry_run of [true, false]) {
        const place = placeOf(await post<ChangeReply>('actions/create', { name: title.includes('/') ? title : `/${title}`, dry_run }));
        if (place !== path) throw new ApiError(0, { message: words.madeElsewhere(place ?? '', path) });
      }
      const made = await get<Note>('note', { name: path });
      const written = await post<ChangeReply>('actions/write', { name: path, hash: made.hash, text: draft.text });
      passed.current.add(made.hash);
      keepDraft({ ...(drafts.peek().get(path) ?? draft), base: draft.text, hash: written.hash ?? made.hash });
      say(words.saved(name));
      changes.value += 1;
    } catch (cause) {
      setError(asError(cause));
    }
    setBusy(false);
  };

  const latest = useRef({ save, close });
  latest.current = { save, close };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 's') {
        event.preventDefault();
        void latest.current.save();
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  useKeys((event) => {
    if (event.key !== 'Escape') return false;
    latest.current.close();
    return true;
  });

  const editor = (
    <textarea
      ref={field}
      class="editor-text"
      aria-label={words.label(name)}
      {...written(draft.text)}
      spellcheck
      autocapitalize="sentences"
      value={draft.text}
      onInput={(event) => type(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.isComposing) return;
        event.preventDefault();
        close();
      }}
    />
  );
  const shown = pane === 'changes' ? <Changes path={path} text={draft.text} /> : <Preview path={path} text={draft.text} />;
  return (
    <div class="view note-view editor-view">
      <header class="note-head">
        <h1 tabIndex={-1} {...written(name)}>
          {words.title(name)}
        </h1>
        <div class="note-actions" role="toolbar" aria-label={strings.note.actions}>
          <Button kind="primary" icon="check" disabled={busy || !dirty || conflict !== null || !note} onClick={() => void save()} title={words.saveKeys}>
            {words.save}
          </Button>
          <Button icon="close" onClick={close}>
            {words.close}
          </Button>
          <span class="editor-state" role="status">
            {busy ? words.saving : dirty ? words.unsaved : saved ? words.isSaved : words.unchanged}
          </span>
        </div>
      </header>
      {refused ? <Failure error={refused} /> : null}
      {error && error.kind !== 'conflict' ? <Failure error={error} retry={error.kind === 'offline' ? () => void save() : undefined} /> : null}
      {note ? null : (
        <div class="failure" role="alert">
          <div>
            <p class="failure-title">{words.gone(path)}</p>
            <p>{words.goneAbout}</p>
            <Button small disabled={busy} onClick={() => void makeAgain()}>
              {words.makeAgain}
            </Button>
          </div>
        </div>
      )}
      {conflict ? <Conflict draft={draft} now={conflict} onKeep={() => keepDraft({ ...draft, base: fieldText(conflict.text), hash: conflict.hash })} onTake={() => dropDraft(path)} /> : null}
      <div class="editor-columns">
        {wide ? editor : null}
        <div class="editor-side">
          <Tabs label={words.panes} id="pane" value={pane} tabs={PANES.filter((item) => !wide || item !== 'text').map((value) => ({ value, label: words.paneNames[value] }))} onChange={(value) => setQuery({ pane: value === 'text' || (wide && value === 'preview') ? null : value })} />
          <TabPanel id="pane" value={pane}>
            {pane === 'text' ? editor : <div class="note-text">{note ? shown : null}</div>}
          </TabPanel>
        </div>
      </div>
      {leaving ? (
        <Dialog
          title={words.leaveTitle}
          onClose={() => setLeaving(false)}
          foot={
            <>
              <Button kind="danger" onClick={leave}>
                {words.discard}
              </Button>
              <Button kind="primary" autofocus onClick={() => setLeaving(false)}>
                {words.goOn}
              </Button>
            </>
          }
        >
          <p>{words.leaveAbout(name)}</p>
        </Dialog>
      ) : null}
    </div>
  );
}
