/** Actions on a session, with their dialogs: rename, fork, close, delete, export. */

import { createSignal, type JSX } from "solid-js";
import { api, errorText } from "../api/client";
import { navigateTo, sessionPath } from "../app/navigate";
import { sessionRow } from "../state/session-row";
import { confirmAction, openDialog, showFailure } from "./open-dialog";
import { shortLine } from "./visible-text";

/** How the session is called in dialogs. */
const titleOf = (sessionId: string): string => {
  const row = sessionRow(sessionId);
  return shortLine(row?.name || row?.title || "", 80) || sessionId;
};

const isWorking = (sessionId: string): boolean => ["working", "asks", "quiet", "waiting"].includes(sessionRow(sessionId)?.state ?? "");

/** Opens a dialog for the name of a session. */
export async function rename(sessionId: string): Promise<void> {
  await openDialog("Rename the session", (close) => <RenameForm sessionId={sessionId} close={close} />);
}

function RenameForm(props: { sessionId: string; close(): void }): JSX.Element {
  const current = sessionRow(props.sessionId)?.name ?? "";
  const [problem, setProblem] = createSignal("");
  let input!: HTMLInputElement;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const name = input.value.trim();
    try {
      await api.sessions.rename(props.sessionId, name === "" ? null : name);
      props.close();
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  return (
    <form class="dialog-form" onSubmit={(event) => void submit(event)}>
      <label>
        Name
        <input ref={input} type="text" maxLength={64} value={current} autofocus autocomplete="off" />
      </label>
      <p class="dialog-text">Commands accept the name instead of the id. Without a name, the title is shown.</p>
      <p class="dialog-problem" role="alert">
        {problem()}
      </p>
      <div class="dialog-buttons">
        <button type="button" onClick={() => props.close()}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Rename
        </button>
      </div>
    </form>
  );
}

/** Creates a session with the same past up to an event, or with all of it, and goes there. */
export async function forkAt(sessionId: string, seq?: number): Promise<void> {
  try {
    const forked = await api.sessions.fork(sessionId, seq === undefined ? {} : { at: seq });
    navigateTo(sessionPath(forked.sessionId));
  } catch (error) {
    await showFailure("The session was not forked", error);
  }
}

/** Ends the agent of a session. A prompt starts it again. */
export async function close(sessionId: string): Promise<void> {
  const text = "Its turn is canceled and its agent ends. The transcript stays, and a prompt starts the agent again.";
  if (isWorking(sessionId) && !(await confirmAction({ title: `Close ${titleOf(sessionId)}?`, text, confirmLabel: "Close the session" }))) return;
  await api.sessions.close(sessionId).catch((error: unknown) => showFailure("The session was not closed", error));
}

/** Deletes a session for good, after a question, and goes to the list. Returns whether it was deleted. */
export async function remove(sessionId: string): Promise<boolean> {
  const text = "Its transcript is deleted and its agent ends. This cannot be undone.";
  if (!(await confirmAction({ title: `Delete ${titleOf(sessionId)}?`, text, confirmLabel: "Delete the session" }))) return false;
  try {
    await api.sessions.delete(sessionId);
  } catch (error) {
    await showFailure("The session was not deleted", error);
    return false;
  }
  if (location.pathname.includes(sessionPath(sessionId))) navigateTo("/");
  return true;
}

/** The address of the file that `jackfield sessions export` writes; secrets are removed from it. */
export const exportPath = (sessionId: string): string => `/api/sessions/${encodeURIComponent(sessionId)}/export`;
