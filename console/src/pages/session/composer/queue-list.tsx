/** The prompts that wait in the session: moved by buttons or by dragging, withdrawn, and run if they are held. */

import type { WaitingPrompt } from "jackfield-client";
import { For, Show, createEffect, createSignal, on, type JSX } from "solid-js";
import { visibleLine } from "../../../ui/visible-text";
import { isMovable, moveBy, moveTo, type QueueMove } from "./queue-moves";
import type { SessionControl } from "./session-control";

export function QueueList(props: { control: SessionControl }): JSX.Element {
  const queue = (): WaitingPrompt[] => props.control.queue();
  const [dragged, setDragged] = createSignal<number>();
  const [target, setTarget] = createSignal<number>();

  /** Rows by prompt: a queue that is loaded again keeps the rows and the focus in them. */
  const prompts = (): number[] => queue().map((it) => it.prompt);
  const itemOf = (prompt: number): WaitingPrompt | undefined => queue().find((it) => it.prompt === prompt);
  let list: HTMLOListElement | undefined;
  /** The button that moved a prompt last. */
  let pressed: HTMLButtonElement | undefined;
  const moveByButton = (move: QueueMove): void => {
    pressed = document.activeElement instanceof HTMLButtonElement ? document.activeElement : undefined;
    void props.control.move(move);
  };
  // A row that moves loses the focus, and so does a button that is disabled at the end of the queue.
  createEffect(
    on(() => prompts().join(), () => {
      const active = document.activeElement;
      const isElsewhere = active !== document.body && active !== pressed;
      if (!pressed || isElsewhere || !list?.contains(pressed)) return;
      const next = pressed.disabled ? pressed.parentElement?.querySelector<HTMLButtonElement>("button:not(:disabled)") : pressed;
      next?.focus();
    }, { defer: true }),
  );
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
        <ol class="queue-list" ref={list}>
          <For each={prompts()}>
            {(prompt) => (
              <Show when={itemOf(prompt)}>
                {(it) => (
                  <li
                    class="queue-item"
                    classList={{ "is-target": target() === prompt, "is-dragged": dragged() === prompt }}
                    draggable={isMovable(it())}
                    onDragStart={(event) => {
                      setDragged(prompt);
                      event.dataTransfer?.setData("text/plain", labelOf(it()));
                    }}
                    onDragEnd={() => setDragged(undefined)}
                    onDragOver={(event) => {
                      if (dragged() === undefined || !isMovable(it())) return;
                      event.preventDefault();
                      setTarget(prompt);
                    }}
                    onDrop={(event) => {
                      event.preventDefault();
                      drop(prompt);
                    }}
                  >
                    <QueueItem item={it()} queue={queue()} control={props.control} onMove={moveByButton} />
                  </li>
                )}
              </Show>
            )}
          </For>
        </ol>
      </section>
    </Show>
  );
}

const labelOf = (it: WaitingPrompt): string => visibleLine(it.text ?? "") || `prompt ${it.prompt}`;

interface QueueItemProps {
  item: WaitingPrompt;
  queue: WaitingPrompt[];
  control: SessionControl;
  /** A button moves the prompt. */
  onMove(move: QueueMove): void;
}

function QueueItem(props: QueueItemProps): JSX.Element {
  const label = (): string => labelOf(props.item).slice(0, 80);
  const canMove = (by: 1 | -1): boolean => moveBy(props.queue, props.item.prompt, by) !== undefined;
  const step = (by: 1 | -1): void => {
    const move = moveBy(props.queue, props.item.prompt, by);
    if (move) props.onMove(move);
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
          <button type="button" class="quiet" aria-label={`Move “${label()}” up`} disabled={!canMove(-1)} onClick={() => step(-1)}>
            ↑
          </button>
          <button type="button" class="quiet" aria-label={`Move “${label()}” down`} disabled={!canMove(1)} onClick={() => step(1)}>
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
