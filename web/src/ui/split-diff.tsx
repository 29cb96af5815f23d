// A difference as two columns, before and after. Where there is no room for both, it is one below the other.

import { useEffect, useState } from 'preact/hooks';
import { strings } from '../strings';
import { pairedLines, written, type DiffFile, type DiffRow } from '../text';
import { Diff, DiffFiles, DiffHead } from './diff';
import { Button } from './parts';

const ROWS_AT_FIRST = 400;

const roomy = window.matchMedia('(min-width: 900px)');

/** Whether two columns have room. */
function useRoomy(): boolean {
  const [wide, setWide] = useState(roomy.matches);
  useEffect(() => {
    const follow = () => setWide(roomy.matches);
    roomy.addEventListener('change', follow);
    return () => roomy.removeEventListener('change', follow);
  }, []);
  return wide;
}

type Side = NonNullable<DiffRow['before']>;

/** The cells of one side of a row. Signs and words say what changed, besides the colour. */
function Cells({ line, side }: { line: Side | null; side: 'before' | 'after' }) {
  if (!line) return <td class={`split-empty ${side}`} colSpan={3} />;
  const [from, to] = line.changed ?? [0, 0];
  const sign = line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : '';
  return (
    <>
      <td class={`number ${line.kind} ${side}`}>{(side === 'before' ? line.before : line.after) ?? ''}</td>
      <td class={`sign ${line.kind}`}>
        <span aria-hidden="true">{sign}</span>
        {line.kind === 'same' ? null : <span class="visually-hidden">{strings.diff[line.kind]}</span>}
      </td>
      <td class={`code ${line.kind}`} {...written(line.text)}>
        {to > from ? (
          <>
            {line.text.slice(0, from)}
            <b>{line.text.slice(from, to)}</b>
            {line.text.slice(to)}
          </>
        ) : (
          line.text || ' '
        )}
      </td>
    </>
  );
}

function File({ file, planned }: { file: DiffFile; planned: boolean }) {
  const [all, setAll] = useState(false);
  const rows = pairedLines(file.lines);
  const shown = all ? rows : rows.slice(0, ROWS_AT_FIRST);
  return (
    <div class="diff-file">
      <DiffHead file={file} planned={planned} />
      {shown.length > 0 ? (
        <div class="diff-scroll" tabIndex={0} role="group" aria-label={strings.diff.of(file.name)}>
          <table class="diff split">
            <colgroup>
              {['before', 'after'].map((side) => [<col key={`${side} number`} class="number" />, <col key={`${side} sign`} class="sign" />, <col key={side} />])}
            </colgroup>
            <thead>
              <tr>
                <th scope="col" colSpan={3}>
                  {strings.diff.before}
                </th>
                <th scope="col" colSpan={3} class="after">
                  {strings.diff.after}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((row, index) =>
                row.text === undefined ? (
                  <tr key={index}>
                    <Cells line={row.before} side="before" />
                    <Cells line={row.after} side="after" />
                  </tr>
                ) : (
                  <tr key={index} class="hunk">
                    <td class="code" colSpan={6}>
                      ⋯ {row.text}
                    </td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      ) : null}
      {shown.length < rows.length ? (
        <Button small kind="quiet" onClick={() => setAll(true)}>
          {strings.diff.showAll(rows.length)}
        </Button>
      ) : null}
    </div>
  );
}

export function SplitDiff({ diff, planned = false }: { diff: string; planned?: boolean }) {
  const wide = useRoomy();
  if (!wide) return <Diff diff={diff} planned={planned} />;
  return <DiffFiles diff={diff} file={(file, index) => <File key={index} file={file} planned={planned} />} />;
}
