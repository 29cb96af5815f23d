// What was deleted, forgotten and archived: when and by whom, what it says, and how to bring it back.

import { useState } from 'preact/hooks';
import { ask, canWrite } from '../actions';
import { get } from '../api';
import { formatMoment } from '../format';
import type { Resource } from '../resource';
import { useResource } from '../resource';
import { location, setQuery, withQuery } from '../router';
import { agentName } from '../event-names';
import { strings } from '../strings';
import { folderOf, written } from '../text';
import type { Inactive, InactiveNote, Trashed, TrashedText, TrashMatches } from '../types';
import { Icon } from '../ui/icons';
import { Button, Card, Failure, Folder, Loading, NoteLink, Time } from '../ui/parts';

const words = strings.memory;

function MemoryList({ list, what, verb, how }: { list: InactiveNote[]; what: string; verb: string; how: string }) {
  const [limit, setLimit] = useState(100);
  if (list.length === 0) return <p class="about">{what}</p>;
  return (
    <>
      <ul class="rows">
        {list.slice(0, limit).map((memory) => (
          <li key={memory.path} data-item-row>
            <NoteLink path={memory.path} title={memory.title} item />
            <span class="row-meta">
              {memory.since ? (
                <a href={withQuery('/activity', { op_id: memory.since.operation })} title={how}>
                  {verb} {formatMoment(memory.since.at)} {byWhom(memory.since.agent)}
                </a>
              ) : (
                <>
                  {verb} <Time at={memory.latest ?? memory.updated} /> <span title={words.orEarlierAbout}>{words.orEarlier}</span>
                </>
              )}
            </span>
            {canWrite() ? (
              <Button small icon="restore" onClick={() => ask('restore', { name: memory.path }, { title: strings.actions.restoreTitle(memory.title), button: strings.actions.restore, done: strings.actions.restored(memory.title) })}>
                {strings.actions.restore}
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {list.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(list.length - limit)}</Button> : null}
    </>
  );
}

const byWhom = (agent: string) => (agent === 'cli' ? words.byHand : words.by(agentName(agent)));

/** The text of a deleted note as it lies in the trash. */
function DeletedText({ path }: { path: string }) {
  const file = useResource(`trash ${path}`, (signal) => get<TrashedText>('trash', { name: path }, signal), { live: false });
  if (file.error) return <Failure error={file.error} retry={file.reload} />;
  if (!file.data) return <Loading lines={3} />;
  if (file.data.text === null) return <p class="about">{words.noText}</p>;
  if (file.data.text.trim() === '') return <p class="about">{words.emptyText}</p>;
  return (
    <pre class="deleted-text" tabIndex={0}>
      {file.data.text}
    </pre>
  );
}

function DeletedRow({ item }: { item: Trashed }) {
  const [open, setOpen] = useState(false);
  const folder = folderOf(item.was);
  return (
    <li class="deleted-row" data-item-row>
      <div class="deleted-head">
        <span class="note-link">
          <button type="button" class="event-toggle" data-item aria-expanded={open} onClick={() => setOpen(!open)}>
            <Icon name="chevron" size={14} />
            <bdi {...written(item.title)}>{item.title}</bdi>
          </button>
          {folder ? <Folder path={folder} /> : null}
        </span>
        <span class="row-meta">
          <a href={withQuery('/activity', { op_id: item.operation })} title={words.howDeleted}>
            {words.deletedAt} {formatMoment(item.at)} {byWhom(item.agent)}
          </a>
        </span>
        {canWrite() ? (
          <Button small icon="restore" onClick={() => ask('restore-file', { name: item.path }, { title: strings.actions.restoreTitle(item.title), button: strings.actions.restore, done: strings.actions.restored(item.title) })}>
            {strings.actions.restore}
          </Button>
        ) : null}
      </div>
      {open ? <DeletedText path={item.path} /> : null}
    </li>
  );
}

export function Away({ inactive }: { inactive: Resource<Inactive> }) {
  const q = location.value.query.get('q') ?? '';
  const [limit, setLimit] = useState(100);
  // The texts of deleted notes are on the server alone. A condition with a mistake has no matches by text.
  const byText = useResource(q.trim().length >= 2 ? `trash matches ${q}` : null, (signal) => get<TrashMatches>('trash/matches', { q, limit: 1000 }, signal), { keep: true, live: 1000 });
  const textual = new Set(q.trim().length >= 2 && !byText.error ? byText.data?.files.map((file) => file.path) : []);
  if (inactive.error) return <Failure error={inactive.error} retry={inactive.reload} />;
  if (!inactive.data) return <Loading lines={8} />;
  const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (path: string, title: string) => wanted.every((word) => `${path} ${title}`.toLowerCase().includes(word));
  const trash = inactive.data.trash.filter((item) => matches(item.was, item.title) || textual.has(item.path));
  const archived = inactive.data.archived.filter((item) => matches(item.path, item.title));
  const forgotten = inactive.data.forgotten.filter((item) => matches(item.path, item.title));
  // With a filter, a part in which nothing matches is not shown.
  const shown = (list: readonly unknown[]) => !q || list.length > 0;
  return (
    <>
      <div class="filters">
        <input type="search" class="input" dir="auto" data-filter-field value={q} placeholder={words.filterAway} aria-label={words.filterAway} onInput={(event) => setQuery({ q: event.currentTarget.value || null })} />
      </div>
      {q && !byText.loading && trash.length + archived.length + forgotten.length === 0 ? (
        <p class="about">
          {words.noneMatch(q)}{' '}
          <button type="button" class="link-button" onClick={() => setQuery({ q: null })}>
            {words.clearFilter}
          </button>
        </p>
      ) : null}
      {shown(trash) ? (
        <Card title={words.deletedTitle(trash.length)} about={words.deletedAbout}>
          {trash.length === 0 ? <p class="about">{words.noDeleted}</p> : null}
          <ul class="rows">
            {trash.slice(0, limit).map((item) => (
              <DeletedRow key={item.path} item={item} />
            ))}
          </ul>
          {trash.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(trash.length - limit)}</Button> : null}
        </Card>
      ) : null}
      {shown(forgotten) ? (
        <Card title={words.forgottenTitle(forgotten.length)} about={words.forgottenAbout}>
          <MemoryList list={forgotten} what={words.noForgotten} verb={words.forgottenAt} how={words.howForgotten} />
        </Card>
      ) : null}
      {shown(archived) ? (
        <Card title={words.archivedTitle(archived.length)} about={words.archivedAbout}>
          <MemoryList list={archived} what={words.noArchived} verb={words.archivedAt} how={words.howArchived} />
        </Card>
      ) : null}
    </>
  );
}
