/** The composer of a session: the prompt, its files, the queue, the settings of the agent, and cancel. */

import { JackfieldError } from "jackfield-client";
import { Show, createEffect, createSignal, on, onCleanup, type JSX } from "solid-js";
import { api, errorText, isSignedOut } from "../../../api/client";
import { newRequestKey } from "../../../api/request-key";
import { connection } from "../../../state/daemon";
import { AttachmentList } from "./attachment-list";
import { createCancelKeys } from "./cancel-keys";
import "./composer.css";
import { readDraft, saveDraft } from "./draft";
import { OutboxList } from "./outbox-list";
import { PromptBox } from "./prompt-box";
import { PromptHistory } from "./prompt-history";
import { PromptOutbox, type OutboxPrompt } from "./prompt-outbox";
import { loadPrompts } from "./prompts-of-log";
import { QueueList } from "./queue-list";
import { chooseSendKey, sendKey } from "./send-key";
import { createSessionControl, type SessionControl } from "./session-control";
import { SettingPickers } from "./setting-pickers";
import { createUploads } from "./uploads";
import { WaitingLine } from "./waiting-line";

/** Prompts that wait are sent again after this time, besides when the connection is back. */
const RESEND_MS = 5_000;

export default function Composer(props: { sessionId: string }): JSX.Element {
  return (
    <Show when={props.sessionId} keyed>
      {(sessionId) => <SessionComposer sessionId={sessionId} />}
    </Show>
  );
}

function SessionComposer(props: { sessionId: string }): JSX.Element {
  const { sessionId } = props;
  const control = createSessionControl(sessionId);
  const uploads = createUploads();
  const [outbox, unsent] = createOutbox(sessionId, control);
  const [text, setText] = createSignal(readDraft(sessionId));
  const [isDropTarget, setDropTarget] = createSignal(false);
  const { history, load: loadHistory } = createHistory(sessionId);
  const isArmed = createCancelKeys(control.isRunning, () => void control.cancelTurn());
  createEffect(on(text, (it) => saveDraft(sessionId, it), { defer: true }));

  const canSend = (): boolean => !uploads.isUploading() && (text().trim() !== "" || uploads.attachments.some((it) => it.path !== undefined));
  const send = (isSteering: boolean): void => {
    if (!canSend()) return;
    const message = text().trim() === "" ? "See the attached files." : text();
    const steer = isSteering && control.isRunning();
    history.add(text());
    setText("");
    void outbox.add({ key: newRequestKey(), message, imagePaths: uploads.take(), steer, at: Date.now() });
  };
  const edit = (prompt: OutboxPrompt): void => {
    outbox.remove(prompt.key);
    setText((it) => (it === "" ? prompt.message : `${prompt.message}\n${it}`));
  };

  return (
    <section
      class="composer"
      classList={{ "is-drop-target": isDropTarget() }}
      aria-label="Composer"
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setDropTarget(true);
      }}
      onDragLeave={() => setDropTarget(false)}
      onDrop={(event) => {
        setDropTarget(false);
        if (!event.dataTransfer?.files.length) return;
        event.preventDefault();
        uploads.add(event.dataTransfer.files);
      }}
    >
      <WaitingLine sessionId={sessionId} />
      <QueueList control={control} />
      <OutboxList prompts={unsent()} onRemove={(key) => outbox.remove(key)} onEdit={edit} />
      <AttachmentList uploads={uploads} />
      <PromptBox
        text={text()}
        onText={setText}
        commands={control.settings()?.commands ?? []}
        history={history}
        onHistory={loadHistory}
        onSend={send}
        onFiles={uploads.add}
        placeholder={control.isRunning() ? "Queue a prompt, or steer the agent" : "What should the agent do?"}
      />
      <ComposerBar control={control} canSend={canSend()} onSend={send} onFiles={uploads.add} />
      <p class="composer-note" role="status">
        {noteOf(control, isArmed())}
      </p>
    </section>
  );
}

function noteOf(control: SessionControl, isArmed: boolean): string {
  const withdrawn = control.queue().some((it) => !it.held) ? " This also withdraws the prompts that wait." : "";
  if (isArmed) return `Press Escape again to cancel the turn.${withdrawn}`;
  return control.problem();
}

interface ComposerBarProps {
  control: SessionControl;
  canSend: boolean;
  onSend(isSteering: boolean): void;
  onFiles(files: Iterable<File>): void;
}

function ComposerBar(props: ComposerBarProps): JSX.Element {
  const [hasSettings, setHasSettings] = createSignal(false);
  let input!: HTMLInputElement;
  return (
    <div class="composer-bar" classList={{ "has-settings": hasSettings() }}>
      <button type="button" class="quiet" aria-label="Add files" title="Add files; they can also be pasted or dropped" onClick={() => input.click()}>
        +
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={() => {
          props.onFiles(input.files ?? []);
          input.value = "";
        }}
      />
      <button
        type="button"
        class="quiet settings-toggle"
        aria-label="Mode, model and options"
        aria-expanded={hasSettings()}
        onClick={() => setHasSettings((it) => !it)}
      >
        ⚙
      </button>
      <SettingPickers control={props.control} />
      <span class="picker send-key">
        <span class="picker-name" aria-hidden="true">
          Sent by
        </span>
        <select aria-label="Key that sends" onChange={(event) => chooseSendKey(event.currentTarget.value === "enter" ? "enter" : "ctrl-enter")}>
          <option value="enter" selected={sendKey() === "enter"}>
            Enter
          </option>
          <option value="ctrl-enter" selected={sendKey() === "ctrl-enter"}>
            Ctrl+Enter
          </option>
        </select>
      </span>
      <span class="composer-actions">
        <Show when={props.control.isRunning()}>
          <button type="button" class="danger" title="Escape twice" onClick={() => void props.control.cancelTurn()}>
            Cancel<span class="wide-only"> turn</span>
          </button>
          <button
            type="button"
            disabled={!props.canSend}
            title="Cancel the running turn and run this prompt next (Alt+Enter)"
            aria-keyshortcuts="Alt+Enter"
            onClick={() => props.onSend(true)}
          >
            Steer
          </button>
        </Show>
        <button type="button" class="primary" disabled={!props.canSend} onClick={() => props.onSend(false)}>
          {props.control.isRunning() ? "Queue" : "Send"}
        </button>
      </span>
    </div>
  );
}

/** The prompts that the daemon has not confirmed. They are sent when the connection is back. */
function createOutbox(sessionId: string, control: SessionControl): [PromptOutbox, () => readonly OutboxPrompt[]] {
  const [unsent, setUnsent] = createSignal<readonly OutboxPrompt[]>([]);
  const outbox = new PromptOutbox(sessionId, {
    storage: localStorage,
    send: async ({ key, message, imagePaths, steer }) => {
      const body = { message, ...(imagePaths.length > 0 && { imagePaths }), ...(steer && { steer }) };
      await api.sessions.prompt(sessionId, body, { idempotencyKey: key });
      control.reload();
    },
    canRetry: (error) => !(error instanceof JackfieldError) || error.retryable || error.code === "IDEMPOTENCY_KEY_IN_USE" || isSignedOut(error),
    describe: errorText,
    now: Date.now,
    onChange: (prompts) => setUnsent(prompts),
  });
  createEffect(() => connection().status === "live" && void outbox.flush());
  const timer = setInterval(() => void outbox.flush(), RESEND_MS);
  onCleanup(() => clearInterval(timer));
  return [outbox, unsent];
}

/** The history is read from the log when it is used first. */
function createHistory(sessionId: string): { history: PromptHistory; load(): Promise<void> } {
  const history = new PromptHistory([]);
  let loading: Promise<void> | undefined;
  const load = (): Promise<void> =>
    (loading ??= loadPrompts(sessionId).then(
      (prompts) => history.fill(prompts),
      () => void (loading = undefined),
    ));
  return { history, load };
}
