/** The button that opens the dialog for a new session. The dialog is loaded when it is used. */

import type { JSX } from "solid-js";

export function NewSessionButton(): JSX.Element {
  const open = (): void => void import("./new-session").then(({ openNewSession }) => openNewSession());
  return (
    <button type="button" class="primary" aria-keyshortcuts="n" title="New session (n)" onClick={open}>
      New session
    </button>
  );
}
