/** Modal dialogs that are opened by code. The browser keeps the focus inside and returns it to where it was. */

import { createUniqueId, type JSX } from "solid-js";
import { render } from "solid-js/web";
import { errorText } from "../api/client";
import "./dialog.css";

/** Shows a dialog until its content calls `close` or the user presses Escape; returns the result. */
export function openDialog<T>(title: string, content: (close: (result?: T) => void) => JSX.Element): Promise<T | undefined> {
  return new Promise((resolve) => {
    const host = document.body.appendChild(document.createElement("div"));
    let result: T | undefined;
    let dialog!: HTMLDialogElement;
    const close = (it?: T): void => {
      result = it;
      dialog.close();
    };
    const onClose = (): void => {
      resolve(result);
      // The dialog must be in the document until the browser has moved the focus back.
      queueMicrotask(() => {
        dispose();
        host.remove();
      });
    };
    const dispose = render(() => {
      const titleId = createUniqueId();
      return (
        <dialog ref={dialog} class="dialog" aria-labelledby={titleId} onClose={onClose}>
          <h2 id={titleId} class="dialog-title">
            {title}
          </h2>
          {content(close)}
        </dialog>
      );
    }, host);
    dialog.showModal();
  });
}

interface ConfirmOptions {
  title: string;
  text: string;
  confirmLabel: string;
  /** What happens if the user does not confirm [default: Cancel]. */
  dismissLabel?: string;
}

/** Asks before an action that cannot be undone. */
export async function confirmAction({ title, text, confirmLabel, dismissLabel = "Cancel" }: ConfirmOptions): Promise<boolean> {
  const isConfirmed = await openDialog<boolean>(title, (close) => (
    <>
      <p class="dialog-text">{text}</p>
      <div class="dialog-buttons">
        <button type="button" onClick={() => close()}>
          {dismissLabel}
        </button>
        <button type="button" class="danger" onClick={() => close(true)}>
          {confirmLabel}
        </button>
      </div>
    </>
  ));
  return isConfirmed === true;
}

/** Says that an action failed, and why. */
export async function showFailure(title: string, error: unknown): Promise<void> {
  await openDialog(title, (close) => (
    <>
      <p class="dialog-text">{errorText(error)}</p>
      <div class="dialog-buttons">
        <button type="button" class="primary" onClick={() => close()}>
          Close
        </button>
      </div>
    </>
  ));
}
