/** The prompts that wait in the session: moved by buttons or by dragging, withdrawn, and run if they are held. */

import type { WaitingPrompt } from "jackfield-client";
import { For, Show, createSignal, type JSX } from "solid-js";
import { visibleLine } from "../../../ui/visible-text";
import { isMovable, moveBy, moveTo } from "./queue-moves";
import type { SessionControl } from "./session-control";

export function QueueList(props: { control: SessionControl }): JSX.Element {
  const queue = (): WaitingPrompt[] => props.control.queue();
  const [dragged, setDragged] = createSignal<number>();
  const [target, setTarget] = createSignal<number>();

  const drop = (place: number): void => {
    const prompt = dragged();
    const move = prompt === undefined ? undefined : moveTo(queue(), prompt, place);
    if (move) void props.control.move(move);
    setDragged(undefined);
    setTarget(undefined);
  };

  return (
    <Show when={queue().length > 0}>
      <section class="queue" aria-label="Queue">
        <h2 class="queue-title">Waiting ({queue().length})</h2>
        <ol class="queue-list">
          <For each={queue()}>
            {(it) => (
              <li
                class="queue-item"
                classList={{ "is-target": target() === it.prompt, "is-dragged": dragged() === it.prompt }}
                draggable={isMovable(it)}
                onDragStart={(event) => {
                  setDragged(it.prompt);
                  event.dataTransfer?.setData("text/plain", labelOf(it));
                }}
                onDragEnd={() => setDragged(undefined)}
                onDragOver={(event) => {
                  if (dragged() === undefined || !isMovable(it)) return;
                  event.preventDefault();
                  setTarget(it.prompt);
                }}
                onDrop={(event) => {
                  event.preventDefault();
                  drop(it.prompt);
                }}
              >
                <QueueItem item={it} queue={queue()} control={props.control} />
              </li>
            )}
          </For>
        </ol>
      </section>
    </Show>
  );
}

const labelOf = (it: WaitingPrompt): string => visibleLine(it.text ?? "") || `prompt ${it.prompt}`;

function QueueItem(props: { item: WaitingPrompt; queue: WaitingPrompt[]; control: SessionControl }): JSX.Element {
  const label = (): string => labelOf(props.item).slice(0, 80);
  const step = (by: 1 | -1): (() => void) | undefined => {
    const move = moveBy(props.queue, props.item.prompt, by);
    return move && (() => void props.control.move(move));
  };
  return (
    <>
      <span class="queue-text">
        {labelOf(props.item)}
        <span class="queue-note">
          <Show when={props.item.steers}> · steers: runs next</Show>
          <Show when={props.item.held}> · held since the daemon stopped</Show>
        </span>
      </span>
      <span class="queue-actions">
        <Show when={props.item.held}>
          <button type="button" aria-label={`Run “${label()}” now`} onClick={() => void props.control.runHeld(props.item.prompt)}>
            Run
          </button>
        </Show>
        <Show when={isMovable(props.item)}>
          <button type="button" class="quiet" aria-label={`Move “${label()}” up`} disabled={!step(-1)} onClick={() => step(-1)?.()}>
            ↑
          </button>
          <button type="button" class="quiet" aria-label={`Move “${label()}” down`} disabled={!step(1)} onClick={() => step(1)?.()}>
            ↓
          </button>
        </Show>
        <button type="button" class="quiet" aria-label={`Withdraw “${label()}”`} onClick={() => void props.control.withdraw(props.item.prompt)}>
          ×
        </button>
      </span>
    </>
  );
}
