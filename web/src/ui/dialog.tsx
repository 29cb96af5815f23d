// Dialogs above the page: native ones, so that the focus stays in them and Esc closes them.

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { strings } from '../strings';
import { Button } from './parts';

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; foot?: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    if (element && !element.open) element.showModal();
    return () => {
      element?.close();
      if (before?.isConnected) before.focus();
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
          <h2 id={title}>{props.title}</h2>
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
