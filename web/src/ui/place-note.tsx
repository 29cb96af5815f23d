// Where a note is: a new note gets a title, a folder and perhaps a template, and a note that is there another name or folder.

import { signal } from '@preact/signals';
import { useId, useState } from 'preact/hooks';
import { ask, countsOf, placeOf } from '../actions';
import { get } from '../api';
import { useResource } from '../resource';
import { go, noteAddress, withQuery } from '../router';
import { strings } from '../strings';
import { fileName, folderOf, isNotePath } from '../text';
import type { ChangeReply, FolderView, Templates } from '../types';
import { Dialog } from './dialog';
import { Button, Coded, Failure } from './parts';

const words = strings.place;

/** A file that is to be moved. */
interface Moved {
  path: string;
  title: string;
  hash: string;
}

type Wanted = { kind: 'new'; folder: string | null } | { kind: 'move'; file: Moved };

const wanted = signal<Wanted | null>(null);

/** Asks for the title of a new note. Without a folder, the settings of the vault say where it goes. */
export function askNew(folder: string | null = null): void {
  wanted.value = { kind: 'new', folder };
}

/** Asks for the new name and folder of a file. */
export function askMove(file: Moved): void {
  wanted.value = { kind: 'move', file };
}

const close = () => {
  wanted.value = null;
};

export function PlaceDialog() {
  const now = wanted.value;
  if (!now) return null;
  return now.kind === 'new' ? <NewNote folder={now.folder} /> : <MoveNote file={now.file} />;
}

/** The done message with how many files were made and changed. */
function withCounts(text: string): (reply: ChangeReply) => string {
  return (reply) => {
    const { made, changed } = countsOf(reply);
    return `${text} ${words.counts(made, changed)}`;
  };
}

/** The folder that a text names, without what is around it. */
const folderText = (text: string): string =>
  text
    .split('/')
    .map((part) => part.trim())
    .filter(Boolean)
    .join('/');

/** A field for a folder, which suggests those that are there. */
function FolderField({ value, onChange, label, placeholder }: { value: string; onChange: (value: string) => void; label: string; placeholder?: string }) {
  const id = useId();
  const above = value.includes('/') ? value.slice(0, value.lastIndexOf('/')) : '';
  // A folder that is not there yet has none in it.
  const inside = useResource(`folders of ${above}`, (signal) => get<FolderView>('folder', { path: above, limit: 0 }, signal).catch(() => null), { keep: true, live: false });
  return (
    <label class="place-field">
      <span>{label}</span>
      <input class="input" type="text" dir="auto" list={id} autocomplete="off" placeholder={placeholder} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
      <datalist id={id}>
        {(inside.data?.folders ?? []).map((folder) => (
          <option key={folder.path} value={folder.path} />
        ))}
      </datalist>
    </label>
  );
}

function NameField({ value, onChange, label }: { value: string; onChange: (value: string) => void; label: string }) {
  return (
    <label class="place-field">
      <span>{label}</span>
      <input class="input" type="text" dir="auto" autocomplete="off" autofocus required value={value} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

/** What a name cannot have, of a name that was typed. */
function wrongName(name: string): string | null {
  return /[\\/]/.test(name) ? words.noSlash : null;
}

function NewNote({ folder: given }: { folder: string | null }) {
  const [title, setTitle] = useState('');
  const [folder, setFolder] = useState(given ?? '');
  const [template, setTemplate] = useState('');
  const templates = useResource('templates', (signal) => get<Templates>('templates', {}, signal), { live: false });
  const name = title.trim();
  const wrong = wrongName(name);
  const place = folderText(folder);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!name || wrong) return;
    close();
    // A title at the root of the vault is told apart from one without a folder.
    const path = place ? `${place}/${name}` : given === '' ? `/${name}` : name;
    ask(
      'create',
      { name: path, ...(template ? { template } : {}) },
      {
        title: words.newTitle(name),
        button: words.create,
        done: withCounts(words.created(name)),
        then: (reply) => {
          const made = placeOf(reply);
          if (made && isNotePath(made)) go(withQuery(noteAddress(made), { edit: '1' }));
        },
      },
    );
  };
  return (
    <Dialog title={words.new} onClose={close} foot={<Foot onSubmit={submit} disabled={!name || wrong !== null} button={words.goOn} />}>
      <form onSubmit={submit}>
        <NameField label={words.title} value={title} onChange={setTitle} />
        {wrong ? <p class="failure-text">{wrong}</p> : null}
        <FolderField label={words.folder} value={folder} onChange={setFolder} placeholder={given === null ? words.folderOfSettings : words.root} />
        {templates.error ? <Failure error={templates.error} retry={templates.reload} /> : null}
        {templates.data && templates.data.templates.length > 0 ? (
          <label class="place-field">
            <span>{words.template}</span>
            <select class="input" value={template} onChange={(event) => setTemplate(event.currentTarget.value)}>
              <option value="">{words.noTemplate}</option>
              {templates.data.templates.map((item) => (
                <option key={item.path} value={item.path}>
                  {item.path.slice((templates.data?.folder.length ?? -1) + 1).replace(/\.md$/i, '')}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        <input type="submit" hidden />
      </form>
    </Dialog>
  );
}

function MoveNote({ file }: { file: Moved }) {
  const ending = isNotePath(file.path) && /\.md$/i.test(file.path) ? file.path.slice(-3) : '';
  const before = file.path.slice(file.path.lastIndexOf('/') + 1);
  const [name, setName] = useState(before.slice(0, before.length - ending.length));
  const [folder, setFolder] = useState(folderOf(file.path));
  const wrong = wrongName(name);
  const place = folderText(folder);
  const to = `${place ? `${place}/` : ''}${name.trim()}${ending}`;
  const ready = name.trim() !== '' && wrong === null && to !== file.path;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    close();
    ask(
      'move',
      { name: file.path, hash: file.hash || undefined, to },
      {
        title: words.moveTitle(file.title),
        about: words.moveAbout(file.path, to),
        button: place === folderOf(file.path) ? words.rename : words.move,
        done: withCounts(words.moved(fileName(to))),
        above: (plan) => <p class="dialog-about">{words.links(countsOf(plan).changed - 1)}</p>,
        then: (reply) => {
          const moved = placeOf(reply);
          if (moved) go(noteAddress(moved), { replace: true });
        },
      },
    );
  };
  return (
    <Dialog title={words.moveTitle(file.title)} onClose={close} foot={<Foot onSubmit={submit} disabled={!ready} button={words.goOn} />}>
      <p class="dialog-about">
        <Coded text={words.moveHint} />
      </p>
      <form onSubmit={submit}>
        <NameField label={words.name} value={name} onChange={setName} />
        {wrong ? <p class="failure-text">{wrong}</p> : null}
        <FolderField label={words.folder} value={folder} onChange={setFolder} placeholder={words.root} />
        <input type="submit" hidden />
      </form>
    </Dialog>
  );
}

function Foot({ onSubmit, disabled, button }: { onSubmit: (event: Event) => void; disabled: boolean; button: string }) {
  return (
    <>
      <Button onClick={close}>{strings.cancel}</Button>
      <Button kind="primary" disabled={disabled} onClick={onSubmit}>
        {button}
      </Button>
    </>
  );
}
