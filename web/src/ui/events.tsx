// One event of the journal: who, what, which notes, and its diff with undo.

import { askUndo, canWrite, Obstacle } from '../actions';
import { get } from '../api';
import { nameText, opName } from '../event-names';
import { formatFull } from '../format';
import { useResource } from '../resource';
import { strings } from '../strings';
import { fileName, folderOf, sentence, written } from '../text';
import type { JournalEvent, OperationReply, TouchedFile } from '../types';
import { Diff } from './diff';
import { Button, Failure, Folder, Loading, NoteLink, Notices, Path, PathText, Time } from './parts';

const words = strings.activity;

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** What maintenance records by itself. */
const AUTOMATIC = ['maintain', 'promote', 'demote', 'checkpoint'];

/** Who did it, as far as the event says: agent, toolset, tool, session. */
export function whoOf(event: JournalEvent): { label: string; value: string }[] {
  if (AUTOMATIC.includes(event.op)) return [{ label: words.who.agent, value: words.automatic }];
  const found: { label: string; value: string }[] = [];
  for (const [key, label] of Object.entries(words.who)) {
    const value = text(event[key]);
    if (value && !found.some((item) => item.value === value)) found.push({ label, value });
  }
  // Commands and this page name no client; moves of other programs have neither.
  if (!event['client'] && !event['agent'] && event.op !== 'moved') found.unshift({ label: words.who.agent, value: words.commandLine });
  return found;
}

/** Whether all files of a move stay in their folder. */
function isRename(event: JournalEvent): boolean {
  const files = event.files ?? [];
  return files.length > 0 && (event.folders?.length ?? 0) === 0 && files.every((file) => file.to === undefined || folderOf(file.to) === folderOf(file.path));
}

export function verbOf(event: JournalEvent): string {
  const tier = text(event['to']);
  if ((event.op === 'promote' || event.op === 'demote') && tier) return words.tierStep(words.tierOps[event.op], tier);
  if (event.op === 'move' && isRename(event)) return words.renamed;
  if (event.op === 'moved' && isRename(event)) return words.renamedBy;
  return opName(event.op);
}

/** Whether an operation made a file, and did not change one that was there. */
const isMade = (file: TouchedFile): boolean => file.before === undefined && file.to === undefined;

/** The notes that an event names. */
function notesOf(event: JournalEvent): string[] {
  const paths = (event.files ?? []).map((file) => file.to ?? file.path);
  if (paths.length > 0) return paths;
  const notes = event['notes'];
  const list = Array.isArray(notes) ? notes.map((item) => (typeof item === 'string' ? item : Array.isArray(item) ? String(item[0]) : ((item as { path?: string } | null)?.path ?? ''))).filter(Boolean) : [];
  if (list.length > 0) return list;
  const path = text(event['path']) ?? text(event.subject);
  return path ? [path] : [];
}

export function subjectText(event: JournalEvent): string {
  if (event.of && event.op !== 'redo') return `${verbOf(event)} “${nameText(event.of)}”`;
  const first = notesOf(event)[0];
  return `${verbOf(event)} ${first ? fileName(first) : ''}`.trim();
}

export function shortSession(value: string): string {
  return value.length > 18 ? `…${value.slice(-6)}` : value;
}

export function Who({ event }: { event: JournalEvent }) {
  const who = whoOf(event);
  if (who.length === 0) return null;
  return (
    <span class="who">
      {who.map((item) => (
        <span key={item.label} class={item.label === words.who.session || item.value === words.commandLine ? 'chip soft' : 'chip'} title={`${item.label}: ${item.value}`}>
          {item.label === words.who.session ? words.sessionName(shortSession(item.value)) : item.value}
        </span>
      ))}
    </span>
  );
}

export function Subject({ event, expand }: { event: JournalEvent; expand?: (() => void) | undefined }) {
  if (event.of && event.op !== 'redo') return <span class="subject">“{nameText(event.of)}”</span>;
  const folder = event.folders?.[0];
  if (folder) {
    return (
      <span class="subject">
        <Path text={`${folder.from}/`} /> → <Path text={`${folder.to}/`} />
      </span>
    );
  }
  const notes = notesOf(event);
  const made = event.files?.filter(isMade) ?? [];
  const changed = (event.files?.length ?? 0) - made.length;
  const first = event.files?.find((file) => file.to !== undefined) ?? made[0] ?? event.files?.[0];
  if (notes.length === 0) return <span class="subject">{event.note ?? ''}</span>;
  const shown = first ? (first.to ?? first.path) : (notes[0] ?? '');
  const moved = first?.to !== undefined && first.to !== first.path;
  return (
    <span class="subject">
      {moved && !shown.startsWith('.trash/') && !first.path.startsWith('.trash/') ? <span class="was"><bdi {...written(first.path)}>{fileName(first.path)}</bdi> → </span> : null}
      {shown.startsWith('.trash/') && first ? (
        <span class="note-link">
          {expand ? (
            <button type="button" class="link-button note-gone" {...written(fileName(first.path))} onClick={expand}>
              {fileName(first.path)}
            </button>
          ) : (
            <bdi class="note-gone" {...written(fileName(first.path))}>{fileName(first.path)}</bdi>
          )}
          <Folder path={folderOf(first.path)} />
        </span>
      ) : (
        <NoteLink path={shown} />
      )}
      {made.length > 0 && changed > 0 ? (
        <span class="others">{words.andChanged(made.length - 1, changed)}</span>
      ) : notes.length > 1 ? (
        <span class="others">{words.andOthers(notes.length - 1)}</span>
      ) : null}
    </span>
  );
}

/** One event in a line, for lists that link to the timeline. */
export function EventLine({ event }: { event: JournalEvent }) {
  return (
    <li class="event-line">
      <a href={`/activity?op_id=${event.id}`} data-item>
        {verbOf(event)}
      </a>{' '}
      <Subject event={event} />
      <span class="event-meta">
        <Who event={event} /> <Time at={event.at} />
      </span>
    </li>
  );
}

/** The diff of an operation, and what taking it back would do. */
export function Operation({ id }: { id: string }) {
  const operation = useResource(`operation ${id}`, (signal) => get<OperationReply>(`operations/${encodeURIComponent(id)}`, {}, signal));
  if (operation.error) return <Failure error={operation.error} retry={operation.reload} />;
  if (!operation.data) return <Loading lines={3} />;
  const { event, diff, diff_missing, undo } = operation.data;
  const others = (event.files ?? []).map((file) => file.to ?? file.path);
  return (
    <div class="operation">
      <Notices notices={undo.notices} />
      {diff ? <Diff diff={diff} /> : null}
      {diff_missing || !diff ? <p class="about">{diff_missing ? sentence(diff_missing) : words.noDiff}</p> : null}
      {!diff && others.length > 0 ? (
        <ul class="plain-list">
          {others.map((path) => (
            <li key={path}>
              <PathText path={path} />
            </li>
          ))}
        </ul>
      ) : null}
      <div class="operation-foot">
        {event.undone ? (
          <p class="about">{words.wasUndone}</p>
        ) : event.restored ? (
          <p class="about">{words.wasRestored}</p>
        ) : undo.possible ? (
          canWrite() ? (
            <Button icon="undo" onClick={() => askUndo(event.id, subjectText(event))}>
              {words.undo}
            </Button>
          ) : (
            <p class="about">{words.readOnly}</p>
          )
        ) : undo.message ? (
          <Obstacle id={event.id} subject={subjectText(event)} undo={undo} files={event.files?.length ?? 0} />
        ) : null}
        <p class="about mono" title={formatFull(event.at)}>
          {event.id}
        </p>
      </div>
    </div>
  );
}
