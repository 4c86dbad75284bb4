/** The composer of a session: the prompt, its files, the queue, the settings of the agent, and cancel. */

import { JackfieldError } from "jackfield-client";
import { Show, createEffect, createSignal, on, onCleanup, type Accessor, type JSX } from "solid-js";
import { api, errorText, isSignedOut } from "../../../api/client";
import { newRequestKey } from "../../../api/request-key";
import { connection } from "../../../state/daemon";
import { formatNumberOf } from "../../../ui/format";
import { confirmAction } from "../../../ui/open-dialog";
import { visibleLine } from "../../../ui/visible-text";
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
  const uploads = createUploads(sessionId);
  const { outbox, unsent, warnings } = createOutbox(sessionId, control);
  const [text, setText] = createSignal(readDraft(sessionId));
  const [isDropTarget, setDropTarget] = createSignal(false);
  let box!: HTMLTextAreaElement;
  const { history, load: loadHistory } = createHistory(sessionId);
  const isArmed = createCancelKeys(control.isRunning, () => void control.cancelTurn());
  createEffect(on(text, (it) => saveDraft(sessionId, it), { defer: true }));

  const canSend = (): boolean => !uploads.isUploading() && (text().trim() !== "" || uploads.attachments.some((it) => it.path !== undefined));
  const send = (isSteering: boolean): void => {
    if (!canSend()) return;
    const { imagePaths, otherPaths } = uploads.take();
    const mentions = otherPaths.map((it) => `@${it}`).join(" ");
    const message = [text().trim() === "" ? "See the attached files." : text(), mentions].filter(Boolean).join("\n\n");
    const steer = isSteering && control.isRunning();
    history.add(text());
    setText("");
    void outbox.add({ key: newRequestKey(), message, imagePaths, steer, at: Date.now() });
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
        onBox={(it) => (box = it)}
        placeholder={control.isRunning() ? "Queue a prompt, or steer the agent" : "What should the agent do?"}
      />
      <ComposerBar control={control} canSend={canSend()} onSend={send} onFiles={uploads.add} onCanceled={() => box.focus()} />
      <p class="composer-note" role="status">
        {noteOf(control, isArmed(), warnings())}
      </p>
    </section>
  );
}

/** The warnings are those of the prompt that was sent last. */
function noteOf(control: SessionControl, isArmed: boolean, warnings: readonly string[]): string {
  const withdrawn = control.withdrawnByCancel().length > 0 ? ` ${describeWithdrawal(control)}` : "";
  if (isArmed) return `Press Escape again to cancel the turn.${withdrawn}`;
  return control.problem() || warnings.map((it) => `Sent, but ${visibleLine(it)}.`).join(" ");
}

/** What a cancel does besides ending the turn. */
const describeWithdrawal = (control: SessionControl): string =>
  `This also withdraws ${formatNumberOf(control.withdrawnByCancel().length, "prompt that waits", "prompts that wait")}.`;

/** Cancels the turn; with a question if prompts would be lost. Returns whether it was canceled. */
async function cancelTurn(control: SessionControl): Promise<boolean> {
  const question = {
    title: "Cancel the turn?",
    text: describeWithdrawal(control),
    confirmLabel: "Cancel turn and queue",
    dismissLabel: "Keep the turn",
  };
  if (control.withdrawnByCancel().length > 0 && !(await confirmAction(question))) return false;
  await control.cancelTurn();
  return true;
}

interface ComposerBarProps {
  control: SessionControl;
  canSend: boolean;
  onSend(isSteering: boolean): void;
  onFiles(files: Iterable<File>): void;
  /** The button for it disappears with the turn, and the focus has to go elsewhere. */
  onCanceled(): void;
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
          <button type="button" class="danger" title="Escape twice" onClick={() => void cancelTurn(props.control).then((isCanceled) => isCanceled && props.onCanceled())}>
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

interface SessionOutbox {
  outbox: PromptOutbox;
  unsent: Accessor<readonly OutboxPrompt[]>;
  /** What the daemon found odd in the prompt that was sent last. */
  warnings: Accessor<readonly string[]>;
}

/** The prompts that the daemon has not confirmed. They are sent when the connection is back. */
function createOutbox(sessionId: string, control: SessionControl): SessionOutbox {
  const [unsent, setUnsent] = createSignal<readonly OutboxPrompt[]>([]);
  const [warnings, setWarnings] = createSignal<readonly string[]>([]);
  const outbox = new PromptOutbox(sessionId, {
    storage: localStorage,
    send: async ({ key, message, imagePaths, steer }) => {
      const body = { message, ...(imagePaths.length > 0 && { imagePaths }), ...(steer && { steer }) };
      const made = await api.sessions.prompt(sessionId, body, { idempotencyKey: key });
      setWarnings(made.warnings ?? []);
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
  return { outbox, unsent, warnings };
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
