// The text that a proposal gives to a file, worded by the reader. What is typed stays until it is saved or discarded.

import { useEffect, useRef, useState } from 'preact/hooks';
import { asError, say } from '../actions';
import { ApiError, post } from '../api';
import { fieldText } from '../drafts';
import { changes } from '../live';
import { strings } from '../strings';
import { written } from '../text';
import type { ProposalDetail } from '../types';
import { Button, Failure, Path } from './parts';

const words = strings.review;

/** What was typed and not saved, by proposal and file. */
const typed = new Map<string, string>();

export function ProposalEditor({ proposal, onEnd }: { proposal: ProposalDetail; onEnd: () => void }) {
  const files = proposal.files ?? [];
  const [path, setPath] = useState(files[0]?.path ?? '');
  const file = files.find((file) => file.path === path) ?? files[0];
  const key = `${proposal.id} ${file?.path}`;
  const base = fieldText(file?.text ?? '');
  const [, setTurn] = useState(0);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const text = typed.get(key) ?? base;

  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(0, 0);
  }, [key]);
  const type = (text: string) => {
    if (text === base) typed.delete(key);
    else typed.set(key, text);
    setTurn((turn) => turn + 1);
  };
  const save = async () => {
    if (busy || !file || !typed.has(key)) return;
    setBusy(true);
    setError(null);
    try {
      await post('actions/edit-proposal', { id: proposal.id, path: file.path, text });
      typed.delete(key);
      say(words.edited);
      changes.value += 1;
      onEnd();
    } catch (cause) {
      setError(asError(cause));
    }
    setBusy(false);
  };
  const discard = () => {
    typed.delete(key);
    onEnd();
  };
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 's') return;
      event.preventDefault();
      void latest.current();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  if (!file) return null;
  return (
    <section class="proposal-editor" aria-label={words.editing}>
      {files.length > 1 ? (
        <label class="choice">
          {words.file}
          <select value={file.path} onChange={(event) => setPath(event.currentTarget.value)}>
            {files.map((file) => (
              <option key={file.path} value={file.path}>
                {file.path}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <p>
          <Path text={file.path} />
        </p>
      )}
      {error ? <Failure error={error} /> : null}
      <textarea ref={field} class="editor-text" aria-label={words.textOf(file.path)} {...written(text)} spellcheck value={text} onInput={(event) => type(event.currentTarget.value)} />
      <div class="row-buttons">
        <Button kind="primary" disabled={busy || !typed.has(key)} onClick={() => void save()} title={strings.editor.saveKeys}>
          {words.saveText}
        </Button>
        <Button onClick={discard}>{typed.has(key) ? words.discardText : strings.close}</Button>
      </div>
    </section>
  );
}
