/** The prompts that the daemon has not confirmed: those that wait for the connection, and those it refused. */

import { For, Show, type JSX } from "solid-js";
import { connection } from "../../../state/daemon";
import { visibleLine } from "../../../ui/visible-text";
import type { OutboxPrompt } from "./prompt-outbox";

interface OutboxListProps {
  prompts: readonly OutboxPrompt[];
  onRemove(key: string): void;
  /** Puts the text back into the box. */
  onEdit(prompt: OutboxPrompt): void;
}

export function OutboxList(props: OutboxListProps): JSX.Element {
  const waitsFor = (): string =>
    connection().status === "signed-out" ? "Waits until you have signed in" : connection().status === "live" ? "Waits until the daemon confirms it" : "Waits for the connection";
  return (
    <div role="status">
      <Show when={props.prompts.length > 0}>
        <ul class="outbox" aria-label="Prompts that are not sent">
          <For each={props.prompts}>
            {(it) => (
              <li class="outbox-item" classList={{ "is-failed": it.problem !== undefined }}>
                <span class="queue-text">
                  {visibleLine(it.message.split("\n")[0] ?? "")}
                  <span class="queue-note"> · {it.problem === undefined ? waitsFor() : `Not sent: ${it.problem}`}</span>
                </span>
                <button type="button" onClick={() => props.onEdit(it)}>
                  Edit
                </button>
                <button type="button" class="quiet" aria-label="Discard" onClick={() => props.onRemove(it.key)}>
                  ×
                </button>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </div>
  );
}
