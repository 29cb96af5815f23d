// What can be done about a link that leads nowhere: choose the note that it means, create it, or keep the text alone.

import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { ask, canWrite } from '../actions';
import { get } from '../api';
import { titlesOf } from '../names';
import { useResource } from '../resource';
import { strings } from '../strings';
import { fileName, folderOf, shownName, written } from '../text';
import type { SearchReply, Suggestions, Trashed, TrashMatches } from '../types';
import { Dialog } from './dialog';
import { Icon } from './icons';
import { Button, Failure, Folder, Loading } from './parts';

const words = strings.health;

/** A broken link: its note, what it names, and its line if only that one is meant. */
export interface BrokenLink {
  note: string;
  link: string;
  line?: number;
}

const asked = signal<BrokenLink | null>(null);

/** Asks what a broken link means. */
export function askBrokenLink(link: BrokenLink): void {
  asked.value = link;
}

/** Asks to replace a broken link by its text. */
export function askUnlink({ note, link, line }: BrokenLink): void {
  asked.value = null;
  ask('link-text', { name: note, link, line }, { title: words.unlinkTitle(link), about: words.unlinkAbout, button: words.apply, done: words.unlinked });
}

/** The path that a new note would have, if a link to it is one that a new note can answer. */
function newNote(link: string): string | null {
  const path = (link.split('#')[0] ?? '').trim().replace(/\.md$/i, '');
  return path === '' || /(^|\/)\.\.?(\/|$)|\.\w{1,5}$|:/.test(path) ? null : path;
}

interface Found {
  path: string;
  title: string;
}

/** Notes whose names contain a text, and then those that a search finds; not the note that has the link. */
async function notesFor(text: string, from: string, signal: AbortSignal): Promise<Found[]> {
  const [named, found] = await Promise.all([get<Suggestions>('suggest', { q: text, limit: 7 }, signal), get<SearchReply>('search', { q: text, limit: 9 }, signal).catch(() => null)]);
  const titles = new Map<string, string>();
  const known = await titlesOf(named.paths, signal).catch(() => new Map<string, string>());
  for (const path of named.paths) titles.set(path, shownName(path, known.get(path)));
  for (const result of found?.results ?? []) titles.set(result.path, shownName(result.path, result.title));
  titles.delete(from);
  return [...titles].slice(0, 10).map(([path, title]) => ({ path, title }));
}

/** The deleted notes that have the name of a broken link. */
async function deletedOf(name: string, signal: AbortSignal): Promise<Trashed[]> {
  const isNamed = (path: string) => fileName(path).toLowerCase() === name.toLowerCase();
  // A name that is no valid query has no matches.
  const found = await get<TrashMatches>('trash/matches', { q: name, limit: 50 }, signal).catch(() => null);
  return (found?.files ?? []).filter((file) => isNamed(file.was));
}

export function BrokenLinkDialog() {
  const broken = asked.value;
  return broken ? <Choice broken={broken} key={`${broken.note} ${broken.link}`} /> : null;
}

function Choice({ broken }: { broken: BrokenLink }) {
  const name = fileName((broken.link.split('#')[0] ?? '').trim());
  const [text, setText] = useState(name);
  const wanted = text.trim();
  const found = useResource(wanted.length >= 2 ? `notes ${wanted}` : null, (signal) => notesFor(wanted, broken.note, signal), { keep: true, live: false });
  const deleted = useResource(name.length >= 2 ? `deleted ${name}` : null, (signal) => deletedOf(name, signal), { live: false });
  const [at, setAt] = useState(0);
  const list = wanted.length >= 2 ? (found.data ?? []) : [];
  // While another text is looked for, the list is that of the former one.
  const current = found.loading ? undefined : list[at];
  useEffect(() => document.getElementById(`link-target-${at}`)?.scrollIntoView({ block: 'nearest' }), [at]);
  const close = () => {
    asked.value = null;
  };
  const choose = ({ path, title }: Found) => {
    close();
    ask('link-target', { name: broken.note, link: broken.link, line: broken.line, to: path }, { title: words.linkTo(title), button: words.apply, done: words.linked(title) });
  };
  const fresh = newNote(broken.link);
  const create = (path: string) => {
    close();
    ask('create', { name: path }, { title: words.createTitle(fileName(path)), button: words.createButton, done: words.created(fileName(path)) });
  };
  const restore = (file: Trashed) => {
    close();
    ask('restore-file', { name: file.path }, { title: strings.actions.restoreTitle(file.title), button: strings.actions.restore, done: strings.actions.restored(file.title) });
  };
  return (
    <Dialog
      title={words.resolveTitle(broken.link)}
      onClose={close}
      foot={
        <>
          {fresh ? <Button onClick={() => create(fresh)}>{words.create(fileName(fresh))}</Button> : null}
          <Button onClick={() => askUnlink(broken)}>{words.unlinkText}</Button>
          <Button onClick={close}>{strings.cancel}</Button>
        </>
      }
    >
      <p class="dialog-about">{words.resolveAbout(broken.note)}</p>
      {(deleted.data ?? []).map((file) => (
        <p class="deleted-hint" key={file.path}>
          <Icon name="trash" size={16} /> <span>{words.wasDeleted(file.was)}</span>{' '}
          <Button small icon="restore" onClick={() => restore(file)}>
            {words.restore}
          </Button>
        </p>
      ))}
      <input
        type="search"
        class="input"
        // The dialog gives the focus to it when it opens.
        autofocus
        // The first key replaces the name of the link.
        onFocus={(event) => event.currentTarget.select()}
        dir="auto"
        value={text}
        list={undefined}
        role="combobox"
        aria-expanded={list.length > 0}
        aria-controls={list.length > 0 ? 'link-targets' : undefined}
        aria-autocomplete="list"
        aria-activedescendant={current ? `link-target-${at}` : undefined}
        aria-label={words.resolveSearch}
        placeholder={words.resolveSearch}
        autocomplete="off"
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            setAt((at + (event.key === 'ArrowDown' ? 1 : -1) + list.length) % Math.max(1, list.length));
          } else if (event.key === 'Enter' && current) {
            event.preventDefault();
            choose(current);
          }
        }}
      />
      {found.error ? <Failure error={found.error} /> : null}
      {!found.data && found.loading && wanted.length >= 2 ? <Loading lines={3} /> : null}
      {list.length > 0 ? (
        <ul class="targets" id="link-targets" role="listbox" aria-label={words.resolveSearch}>
          {list.map((note, index) => (
            <li key={note.path} id={`link-target-${index}`} role="option" aria-selected={index === at && current !== undefined} onPointerMove={() => setAt(index)} onClick={() => choose(note)}>
              <span {...written(note.title)}>{note.title}</span>
              <Folder path={folderOf(note.path)} />
            </li>
          ))}
        </ul>
      ) : null}
      {found.data?.length === 0 && wanted.length >= 2 ? <p class="about">{words.resolveNone}</p> : null}
    </Dialog>
  );
}

/** The buttons for a broken link in a list. */
export function BrokenLinkButtons({ broken }: { broken: BrokenLink }) {
  if (!canWrite()) return null;
  return (
    <span class="row-buttons">
      <Button small onClick={() => askBrokenLink(broken)}>
        {words.resolve}
      </Button>
      <Button small onClick={() => askUnlink(broken)}>
        {words.unlinkText}
      </Button>
    </span>
  );
}
