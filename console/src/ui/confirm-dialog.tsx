/** A question before an action that cannot be undone. */

import { createEffect, type JSX } from "solid-js";
import "./dialog.css";

interface ConfirmDialogProps {
  isOpen: boolean;
  title: string;
  /** What happens on confirmation. */
  children: JSX.Element;
  confirmLabel: string;
  onConfirm(): void;
  onCancel(): void;
}

/** A modal dialog: the browser keeps the focus inside, and Escape cancels. */
export function ConfirmDialog(props: ConfirmDialogProps): JSX.Element {
  let dialog!: HTMLDialogElement;
  createEffect(() => {
    if (props.isOpen && !dialog.open) dialog.showModal();
    if (!props.isOpen && dialog.open) dialog.close();
  });
  return (
    <dialog ref={dialog} class="dialog" aria-label={props.title} onClose={() => props.isOpen && props.onCancel()}>
      <h2 class="dialog-title">{props.title}</h2>
      <div class="dialog-text">{props.children}</div>
      <div class="dialog-buttons">
        <button type="button" onClick={() => props.onCancel()}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => props.onConfirm()}>
          {props.confirmLabel}
        </button>
      </div>
    </dialog>
  );
}
