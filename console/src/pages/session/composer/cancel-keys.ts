/** Escape twice cancels the running turn; once says so. */

import { createSignal, onCleanup, onMount, type Accessor } from "solid-js";

/** The second key must follow within this time. */
export const SECOND_KEY_MS = 1500;

/** Calls `cancel` on the second Escape. Returns whether the first one was typed. */
export function createCancelKeys(canCancel: () => boolean, cancel: () => void): Accessor<boolean> {
  const [isArmed, setArmed] = createSignal(false);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onKeyDown = (event: KeyboardEvent): void => {
    // Elsewhere Escape closes a dialog, a menu or the search.
    const isElsewhere = event.target instanceof Element && event.target.closest("dialog, input, select, [popover]") !== null;
    if (event.key !== "Escape" || event.repeat || event.isComposing || event.defaultPrevented || isElsewhere || !canCancel()) return;
    clearTimeout(timer);
    if (isArmed()) {
      setArmed(false);
      cancel();
      return;
    }
    setArmed(true);
    timer = setTimeout(() => setArmed(false), SECOND_KEY_MS);
  };
  onMount(() => document.addEventListener("keydown", onKeyDown));
  onCleanup(() => {
    clearTimeout(timer);
    document.removeEventListener("keydown", onKeyDown);
  });
  return isArmed;
}
