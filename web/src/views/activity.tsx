// The journal as a timeline: who did what to which notes, with the diff of each operation and its undo.

import { useState } from 'preact/hooks';
import { ask, canWrite } from '../actions';
import { get } from '../api';
import { agentName, nameText } from '../event-names';
import { dayBounds, formatClock, formatFull, formatLongDay, localDate } from '../format';
import { now } from '../live';
import { nameOf } from '../names';
import { useResource } from '../resource';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import { sentence } from '../text';
import type { ActivityReply, JournalEvent, OperationReply, SessionOperation } from '../types';
import { Diff } from '../ui/diff';
import { Operation, shortSession, Subject, verbOf, Who } from '../ui/events';
import { Icon } from '../ui/icons';
import { Button, Coded, Empty, Failure, Loading, Segments, Time, ViewHead } from '../ui/parts';

const words = strings.activity;
const PAGE = 60;

function EventRow({ event, open, toggle }: { event: JournalEvent; open: boolean; toggle: () => void }) {
  const isOperation = (event.files?.length ?? 0) > 0 || (event.folders?.length ?? 0) > 0;
  const useful = event['useful'];
  return (
    <li class={`event${event.undone ? ' undone' : ''}`} data-item-row>
      <time class="event-time" dateTime={event.at} title={formatFull(event.at)}>
        {formatClock(event.at)}
      </time>
      <div class="event-main">
        <div class="event-head">
          {isOperation ? (
            <button type="button" class="event-toggle" data-item aria-expanded={open} onClick={toggle}>
              <Icon name="chevron" size={14} />
              <span>{verbOf(event)}</span>
            </button>
          ) : (
            <span class="event-verb" tabIndex={-1} data-item>
              {verbOf(event)}
              {typeof useful === 'boolean' ? ` ${useful ? words.up : words.down}` : ''}
            </span>
          )}
          <Subject event={event} expand={toggle} />
          <Who event={event} />
          {event.undone ? <span class="chip soft">{words.undone}</span> : null}
          {event.restored ? <span class="chip soft">{words.restored}</span> : null}
        </div>
        {event.note && isOperation ? <p class="event-note">{event.note}</p> : null}
        {open ? <Operation id={event.id} /> : null}
      </div>
    </li>
  );
}

function Choice({ label, value, options, onChange, format }: { label: string; value: string; options: string[]; onChange: (value: string) => void; format?: (value: string) => string }) {
  const list = value && !options.includes(value) ? [value, ...options] : options;
  if (list.length === 0) return null;
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{words.any}</option>
        {list.map((option) => (
          <option key={option} value={option}>
            {format ? format(option) : option}
          </option>
        ))}
      </select>
    </label>
  );
}

/** An operation that the undo of a session takes back, or leaves. */
function SessionRow({ operation }: { operation: SessionOperation }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button type="button" class="event-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" size={14} />
        <span>{nameText(operation)}</span>
      </button>{' '}
      <Time at={operation.at} />
      {operation.reason ? <p class="about">{sentence(operation.reason)}</p> : null}
      {open ? <OperationDiff id={operation.id} /> : null}
    </li>
  );
}

/** What an operation changed. */
function OperationDiff({ id }: { id: string }) {
  const operation = useResource(`operation ${id}`, (signal) => get<OperationReply>(`operations/${encodeURIComponent(id)}`, {}, signal));
  if (operation.error) return <Failure error={operation.error} retry={operation.reload} />;
  if (!operation.data) return <Loading lines={3} />;
  return operation.data.diff ? <Diff diff={operation.data.diff} /> : <p class="about">{operation.data.diff_missing ?? words.noDiff}</p>;
}

/** Asks to undo all that a session did. */
function askUndoSession(session: string): void {
  ask(
    'undo-session',
    { session },
    {
      title: words.undoSessionTitle(shortSession(session)),
      about: words.undoSessionAbout,
      button: words.undoSessionButton,
      done: (reply) => [words.sessionUndone(reply.undone?.length ?? 0), ...(reply.notices ?? []).map(sentence)].join(' '),
      seen: ({ session: found }) => ({ ids: found?.operations.map((operation) => operation.id) ?? [] }),
      instead: ({ session: found }) => (
        <>
          <h3>{words.takenBack(found?.operations.length ?? 0)}</h3>
          <ol class="plain-list session-list">
            {found?.operations.map((operation) => (
              <SessionRow key={operation.id} operation={operation} />
            ))}
          </ol>
          {found && found.stays.length > 0 ? (
            <>
              <h3>{words.staysAsIs(found.stays.length)}</h3>
              <ol class="plain-list session-list">
                {found.stays.map((operation) => (
                  <SessionRow key={operation.id} operation={operation} />
                ))}
              </ol>
            </>
          ) : null}
        </>
      ),
    },
  );
}

export default function ActivityView() {
  const { query } = location.value;
  const day = query.get('day') ?? '';
  const session = query.get('session') ?? '';
  const agent = query.get('agent') ?? '';
  const op = query.get('op') ?? '';
  const note = query.get('note') ?? '';
  const all = query.get('all') === '1';
  const wanted = query.get('op_id');
  const [open, setOpen] = useState<Set<string>>(new Set(wanted ? [wanted] : []));
  const [limit, setLimit] = useState(PAGE);
  const bounds = day ? dayBounds(day) : null;
  const filters = { from: bounds?.from, to: bounds?.to, session, agent, op, note, all };
  const reply = useResource(JSON.stringify([filters, limit]), (signal) => get<ActivityReply>('activity', { ...filters, limit }, signal), { keep: true });
  const redo = reply.data?.redo;
  const today = localDate(now());
  const yesterday = localDate(now() - 86_400_000);
  const dayChoice = day === '' ? 'all' : day === today ? 'today' : day === yesterday ? 'yesterday' : 'other';
  const events = reply.data?.events ?? [];
  const groups: { day: string; events: JournalEvent[] }[] = [];
  for (const event of events) {
    const date = localDate(Date.parse(event.at));
    const last = groups[groups.length - 1];
    if (last?.day === date) last.events.push(event);
    else groups.push({ day: date, events: [event] });
  }
  const filtered = Boolean(day || session || agent || op || note);
  const single = wanted && !events.some((event) => event.id === wanted);
  return (
    <div class="view activity-view">
      <ViewHead title={words.title} about={words.about}>
        {canWrite() && session ? (
          <Button icon="undo" onClick={() => askUndoSession(session)}>
            {words.undoSession}
          </Button>
        ) : null}
        {canWrite() && redo ? (
          <Button icon="redo" onClick={() => ask('redo', {}, { title: words.redoTitle(nameText(redo)), button: words.redoButton, done: words.redone(nameText(redo)) })}>
            {words.redo}
          </Button>
        ) : null}
      </ViewHead>
      <div class="filters" role="group" aria-label={words.filters}>
        <Segments
          label={words.day}
          value={dayChoice}
          options={[
            { value: 'all', label: words.allDays },
            { value: 'today', label: words.today },
            { value: 'yesterday', label: words.yesterday },
            ...(dayChoice === 'other' ? [{ value: 'other', label: formatLongDay(`${day}T12:00:00`) }] : []),
          ]}
          onChange={(value) => setQuery({ day: value === 'today' ? today : value === 'yesterday' ? yesterday : value === 'all' ? null : day, op_id: null }, { replace: false })}
        />
        <label class="choice">
          <span>{words.onDay}</span>
          <input type="date" value={day} max={today} onChange={(event) => setQuery({ day: event.currentTarget.value || null, op_id: null }, { replace: false })} />
        </label>
        <Choice label={words.agent} value={agent} options={reply.data?.agents ?? []} format={agentName} onChange={(value) => setQuery({ agent: value || null })} />
        <Choice label={words.session} value={session} options={reply.data?.sessions ?? []} format={shortSession} onChange={(value) => setQuery({ session: value || null })} />
        <Choice label={words.kind} value={op} options={reply.data?.ops ?? []} format={(value) => (words.ops as Record<string, string>)[value] ?? value} onChange={(value) => setQuery({ op: value || null })} />
        <label class="check">
          <input type="checkbox" checked={all} onChange={(event) => setQuery({ all: event.currentTarget.checked ? '1' : null })} /> <span>{words.withUses}</span>
        </label>
        {note ? (
          <Button small icon="close" onClick={() => setQuery({ note: null })}>
            {nameOf(note)}
          </Button>
        ) : null}
      </div>
      {reply.error ? <Failure error={reply.error} retry={reply.reload} /> : null}
      {!reply.data && !reply.error ? <Loading lines={10} /> : null}
      {single && wanted ? (
        <section class="day">
          <h2>{words.oneOperation}</h2>
          <Operation id={wanted} />
        </section>
      ) : null}
      {reply.data && events.length === 0 ? (
        <Empty title={filtered ? words.noneFiltered : words.none} icon="activity">
          {filtered ? (
            <Button onClick={() => setQuery({ day: null, session: null, agent: null, op: null, note: null }, { replace: false })}>{words.clear}</Button>
          ) : (
            <p><Coded text={words.noneAdvice} /></p>
          )}
        </Empty>
      ) : null}
      {groups.map((group) => (
        <section class="day" key={group.day}>
          <h2>
            {group.day === today ? words.today : group.day === yesterday ? words.yesterday : formatLongDay(`${group.day}T12:00:00`)}
            <span class="count">{group.events.length}</span>
          </h2>
          <ol class="events">
            {group.events.map((event) => (
              <EventRow
                key={event.id}
                event={event}
                open={open.has(event.id)}
                toggle={() =>
                  setOpen((old) => {
                    const next = new Set(old);
                    if (!next.delete(event.id)) next.add(event.id);
                    return next;
                  })
                }
              />
            ))}
          </ol>
        </section>
      ))}
      {reply.data?.next && limit < 500 ? <Button onClick={() => setLimit(Math.min(500, limit * 3))}>{words.earlier}</Button> : null}
      {reply.data?.next && limit >= 500 ? <p class="about">{words.narrow}</p> : null}
    </div>
  );
}
