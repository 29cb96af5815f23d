// A unified diff, with what changed within a line marked.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { strings } from '../strings';
import { parseDiff, written, type DiffFile, type DiffLine } from '../text';
import { Button, Path, PathText } from './parts';

const LINES_AT_FIRST = 400;
const FILES_AT_FIRST = 20;

function Line({ line }: { line: DiffLine }) {
  if (line.kind === 'hunk' || line.kind === 'note') {
    return (
      <tr class={line.kind}>
        <td class="number" />
        <td class="number" />
        <td class="sign" />
        <td class="code">{line.kind === 'hunk' ? `⋯ ${line.text}` : line.text}</td>
      </tr>
    );
  }
  const sign = line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : ' ';
  const [from, to] = line.changed ?? [0, 0];
  return (
    <tr class={line.kind}>
      <td class="number">{line.before ?? ''}</td>
      <td class="number">{line.after ?? ''}</td>
      <td class="sign">
        <span aria-hidden="true">{sign}</span>
        {line.kind === 'same' ? null : <span class="visually-hidden">{strings.diff[line.kind]}</span>}
      </td>
      <td class="code" {...written(line.text)}>
        {line.changed && to > from ? (
          <>
            {line.text.slice(0, from)}
            <b>{line.text.slice(from, to)}</b>
            {line.text.slice(to)}
          </>
        ) : (
          line.text || ' '
        )}
      </td>
    </tr>
  );
}

/** The name of a file; of one that a plan moves or makes there is nothing to open yet. */
const Name = ({ path, planned }: { path: string; planned: boolean }) => (planned ? <Path text={path} /> : <PathText path={path} />);

/** What happens to a file, above its lines. */
export function DiffHead({ file, planned }: { file: DiffFile; planned: boolean }) {
  const moved = file.from && file.to && file.from !== file.to;
  return (
    <div class="diff-head">
      {moved ? (
        <span class="path">
          <Path text={file.from ?? ''} /> → <Name path={file.to ?? ''} planned={planned} />
        </span>
      ) : (
        <Name path={file.name} planned={planned} />
      )}
      <span class="diff-kind">{file.from === null && file.to ? strings.diff.created : file.to === null && file.from ? strings.diff.deleted : moved ? strings.diff.moved : null}</span>
      {file.added + file.removed > 0 || !moved ? (
        <span class="diff-count">
          <span class="plus">+{file.added}</span> <span class="minus">−{file.removed}</span>
        </span>
      ) : null}
    </div>
  );
}

function File({ file, planned }: { file: DiffFile; planned: boolean }) {
  const [all, setAll] = useState(false);
  const lines = all ? file.lines : file.lines.slice(0, LINES_AT_FIRST);
  return (
    <div class="diff-file">
      <DiffHead file={file} planned={planned} />
      {lines.length > 0 ? (
        <div class="diff-scroll" tabIndex={0} role="group" aria-label={strings.diff.of(file.name)}>
          <table class="diff" role="presentation">
            <tbody>
              {lines.map((line, index) => (
                <Line key={index} line={line} />
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {lines.length < file.lines.length ? (
        <Button small kind="quiet" onClick={() => setAll(true)}>
          {strings.diff.showAll(file.lines.length)}
        </Button>
      ) : null}
    </div>
  );
}

/** The files of a difference, each as `file` shows it. */
export function DiffFiles({ diff, file }: { diff: string; file: (file: DiffFile, index: number) => ComponentChildren }) {
  const [all, setAll] = useState(false);
  const files = parseDiff(diff);
  if (files.length === 0) return <p class="about">{strings.diff.nothing}</p>;
  const shown = all ? files : files.slice(0, FILES_AT_FIRST);
  return (
    <div class="diffs">
      {shown.map(file)}
      {shown.length < files.length ? (
        <Button small kind="quiet" onClick={() => setAll(true)}>
          {strings.diff.moreFiles(files.length - shown.length)}
        </Button>
      ) : null}
    </div>
  );
}

/** The difference of an operation, or of a plan, whose files have no links: a link would lead away from the dialog. */
export function Diff({ diff, planned = false }: { diff: string; planned?: boolean }) {
  return <DiffFiles diff={diff} file={(file, index) => <File key={index} file={file} planned={planned} />} />;
}
