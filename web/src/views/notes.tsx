// The folders of the vault with their notes. A folder is loaded when it is opened, and of many notes a part at a time.

import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { canWrite } from '../actions';
import { get } from '../api';
import { formatCount } from '../format';
import { moveFocus } from '../keys';
import { useResource } from '../resource';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import { written } from '../text';
import type { FolderView, Suggestions } from '../types';
import { Icon } from '../ui/icons';
import { Button, Empty, Failure, Loading, NoteLink, ViewHead } from '../ui/parts';
import { askNew } from '../ui/place-note';

const words = strings.notes;
/** The notes that are loaded at once. */
const PART = 200;
const MOST_FOUND = 50;

/** The folders that are open, as long as the page is. */
const open = signal<ReadonlySet<string>>(new Set());

function setOpen(paths: readonly string[], isOpen: boolean): void {
  const next = new Set(open.value);
  for (const path of paths) isOpen ? next.add(path) : next.delete(path);
  open.value = next;
}

/** A folder and those around it. */
function withOuter(path: string): string[] {
  const parts = path.split('/').filter(Boolean);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** A part of the notes of a folder after the first one. */
function MoreNotes({ path, skip }: { path: string; skip: number }) {
  const part = useResource(`folder ${path} ${skip}`, (signal) => get<FolderView>('folder', { path, skip, limit: PART }, signal));
  if (part.error) return <Failure error={part.error} retry={part.reload} />;
  if (!part.data) return <Loading lines={3} />;
  return <Leaves view={part.data} />;
}

function Leaves({ view }: { view: FolderView }) {
  return (
    <ul class="tree-notes">
      {view.notes.map((note) => (
        <li key={note.path} class="tree-row" data-item-row>
          <Icon name="note" size={16} />
          <NoteLink path={note.path} title={note.title} item bare />
        </li>
      ))}
    </ul>
  );
}

function Content({ path }: { path: string }) {
  const [parts, setParts] = useState(1);
  const folder = useResource(`folder ${path}`, (signal) => get<FolderView>('folder', { path, limit: PART }, signal));
  if (folder.error) return <Failure error={folder.error} retry={folder.reload} />;
  if (!folder.data) return <Loading lines={2} />;
  const { folders, own, total } = folder.data;
  const left = own - parts * PART;
  return (
    <>
      {path === '' && total === 0 && folders.length === 0 ? (
        <Empty title={words.none} icon="folder">
          {canWrite() ? words.noneAdvice : null}
        </Empty>
      ) : null}
      {folders.length > 0 ? (
        <ul class="tree">
          {folders.map((item) => (
            <Folder key={item.path} path={item.path} notes={item.notes} />
          ))}
        </ul>
      ) : null}
      {own > 0 ? <Leaves view={folder.data} /> : null}
      {Array.from({ length: parts - 1 }, (_, index) => (
        <MoreNotes key={index} path={path} skip={(index + 1) * PART} />
      ))}
      {left > 0 ? (
        <Button small item onClick={() => setParts(parts + 1)}>
          {words.more(Math.min(PART, left), formatCount(left))}
        </Button>
      ) : null}
    </>
  );
}

function Folder({ path, notes }: { path: string; notes: number }) {
  const isOpen = open.value.has(path);
  const name = path.slice(path.lastIndexOf('/') + 1);
  const chosen = location.value.query.get('folder') === path;
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const toggle = (to: boolean) => {
    setOpen([path], to);
    setQuery({ folder: to ? path : path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : null });
  };
  return (
    <li>
      <div class={`tree-row tree-folder${chosen ? ' chosen' : ''}`} data-item-row ref={row}>
        <button
          type="button"
          class="tree-toggle"
          data-item
          aria-expanded={isOpen}
          aria-current={chosen ? 'true' : undefined}
          onClick={() => toggle(!isOpen)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowRight' && !isOpen) toggle(true);
            else if (event.key === 'ArrowLeft' && isOpen) toggle(false);
            else return;
            event.preventDefault();
          }}
        >
          <Icon name="chevron" size={14} />
          <Icon name="folder" size={17} />
          <bdi {...written(name)}>{name}</bdi>
          <span class="count" title={words.count(notes)}>
            {formatCount(notes)}
            <span class="visually-hidden"> {words.notesIn(notes)}</span>
          </span>
        </button>
        {canWrite() ? <Button small kind="quiet" icon="plus" label={words.newIn(name)} onClick={() => askNew(path)} /> : null}
      </div>
      {isOpen ? (
        <div class="tree-inside">
          <Content path={path} />
        </div>
      ) : null}
    </li>
  );
}

/** The notes whose names contain a text. */
function Named({ text }: { text: string }) {
  const found = useResource(`named ${text}`, (signal) => get<Suggestions>('suggest', { q: text, limit: MOST_FOUND }, signal), { keep: true });
  if (found.error) return <Failure error={found.error} retry={found.reload} />;
  if (!found.data) return <Loading lines={4} />;
  if (found.data.paths.length === 0) return <Empty title={words.noMatch(text)} icon="folder" />;
  return (
    <ul class="tree-notes">
      {found.data.paths.map((path) => (
        <li key={path} class="tree-row" data-item-row>
          <Icon name="note" size={16} />
          <NoteLink path={path} item />
        </li>
      ))}
    </ul>
  );
}

export default function NotesView() {
  const { query } = location.value;
  const folder = query.get('folder') ?? '';
  const text = query.get('q') ?? '';
  useEffect(() => {
    if (folder) setOpen(withOuter(folder), true);
  }, [folder]);
  return (
    <div class="view notes-view">
      <ViewHead title={words.title} about={words.about}>
        {canWrite() ? (
          <Button icon="plus" kind="primary" onClick={() => askNew(folder || null)}>
            {folder ? words.newHere : words.new}
          </Button>
        ) : null}
      </ViewHead>
      <div class="filters">
        <input
          type="search"
          class="input"
          data-filter-field
          dir="auto"
          aria-label={words.filter}
          placeholder={words.filter}
          autocomplete="off"
          value={text}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
      </div>
      <div
        class="tree-box"
        onKeyDown={(event) => {
          const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
          if (step && moveFocus(step)) event.preventDefault();
        }}
      >
        {text.trim() ? <Named text={text.trim()} /> : <Content path="" />}
      </div>
    </div>
  );
}
