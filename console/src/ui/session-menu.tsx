/** The menu of a session: a button that shows its actions. */

import { For, Show, createEffect, createSignal, createUniqueId, onCleanup, type JSX } from "solid-js";
import { close, exportPath, forkAt, remove, rename } from "./session-actions";
import "./session-menu.css";

const ACTIONS: { label: string; isDangerous?: true; run(sessionId: string): Promise<unknown> }[] = [
  { label: "Rename…", run: rename },
  { label: "Copy id", run: (sessionId) => navigator.clipboard.writeText(sessionId) },
  { label: "Fork", run: (sessionId) => forkAt(sessionId) },
  { label: "Close", run: close },
  { label: "Delete…", isDangerous: true, run: remove },
];

const MARGIN_PX = 4;

export function SessionMenu(props: { sessionId: string }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const listId = createUniqueId();
  let root!: HTMLDivElement;
  let button!: HTMLButtonElement;

  // The list stays where it was shown; the button scrolls away from it.
  createEffect(() => {
    if (!isOpen()) return;
    const closeList = (): void => void setOpen(false);
    document.addEventListener("scroll", closeList, { capture: true, passive: true });
    onCleanup(() => document.removeEventListener("scroll", closeList, { capture: true }));
  });

  const items = (): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(".session-menu-item")];
  const step = (by: 1 | -1): void => {
    const all = items();
    const index = all.indexOf(document.activeElement as HTMLElement);
    all[(index + by + all.length) % all.length]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOpen()) return;
    if (event.key === "Escape") {
      setOpen(false);
      button.focus();
    } else if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else return;
    event.preventDefault();
  };

  return (
    <div
      class="session-menu"
      ref={root}
      onKeyDown={onKeyDown}
      onFocusOut={(event) => !root.contains(event.relatedTarget as Node | null) && setOpen(false)}
    >
      <button
        type="button"
        class="quiet"
        ref={button}
        aria-label="Actions of the session"
        aria-expanded={isOpen()}
        aria-controls={isOpen() ? listId : undefined}
        onClick={() => setOpen((it) => !it)}
      >
        ⋯
      </button>
      <Show when={isOpen()}>
        <ul class="session-menu-list" id={listId} popover="manual" ref={(list) => queueMicrotask(() => placeBeside(list, button))}>
          <For each={ACTIONS}>
            {(action) => (
              <li>
                <button
                  type="button"
                  class="session-menu-item"
                  classList={{ "is-dangerous": action.isDangerous ?? false }}
                  onClick={() => {
                    // The dialog of the action returns the focus here.
                    button.focus();
                    setOpen(false);
                    void action.run(props.sessionId);
                  }}
                >
                  {action.label}
                </button>
              </li>
            )}
          </For>
          <li>
            <a class="session-menu-item" href={exportPath(props.sessionId)} target="_self" download={`${props.sessionId}.ndjson`} rel="external" onClick={() => setOpen(false)}>
              Export
            </a>
          </li>
        </ul>
      </Show>
    </div>
  );
}

/** Shows the list above everything else, below its button or, at the end of the window, above it. */
function placeBeside(list: HTMLElement, button: HTMLElement): void {
  list.showPopover();
  const place = button.getBoundingClientRect();
  const { width, height } = list.getBoundingClientRect();
  const isBelow = place.bottom + height + MARGIN_PX <= innerHeight;
  list.style.left = `${Math.max(MARGIN_PX, Math.min(place.right, innerWidth - MARGIN_PX) - width)}px`;
  list.style.top = `${isBelow ? place.bottom : Math.max(MARGIN_PX, place.top - height)}px`;
}
