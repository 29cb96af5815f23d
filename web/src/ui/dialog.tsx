// Dialogs above the page: native ones, so that the focus stays in them and Esc closes them.

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { strings } from '../strings';
import { Button } from './parts';

/** Milliseconds after a dialog in which what it was opened from can go away because of the change. */
const SETTLED = 5000;

const itemsOfView = () => [...document.querySelectorAll<HTMLElement>('main [data-item]')];

/**
 * Gives the focus back to where a dialog was opened from. If that goes away, as the button of an undo does, its row has the
 * focus, or the row that follows.
 */
function focusAgain(before: HTMLElement, row: Element | null, at: number): void {
  before.focus();
  const place = () => {
    if (before.isConnected) return;
    observer.disconnect();
    // Nothing else was given the focus meanwhile.
    if (document.activeElement !== document.body) return;
    const items = itemsOfView();
    const item = row?.isConnected ? row.querySelector<HTMLElement>('[data-item]') : items[Math.min(at, items.length - 1)];
    (item ?? document.querySelector<HTMLElement>('main h1'))?.focus({ preventScroll: true });
  };
  const observer = new MutationObserver(place);
  observer.observe(document.body, { childList: true, subtree: true });
  window.setTimeout(() => observer.disconnect(), SETTLED);
  place();
}

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; foot?: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    const row = before?.closest('[data-item-row]') ?? null;
    const at = row ? itemsOfView().findIndex((item) => row.contains(item)) : -1;
    if (element && !element.open) element.showModal();
    return () => {
      element?.close();
      if (before) focusAgain(before, row, at);
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? 'wide' : ''}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) props.onClose();
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={title} dir="auto">{props.title}</h2>
          <Button kind="quiet" icon="close" label={strings.close} onClick={props.onClose} />
        </header>
        <div class="dialog-body" tabIndex={-1}>
          {props.children}
        </div>
        {props.foot ? <footer class="dialog-foot">{props.foot}</footer> : null}
      </div>
    </dialog>
  );
}
