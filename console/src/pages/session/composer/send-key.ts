/** Which key sends a prompt: Enter, or Ctrl+Enter (Cmd+Enter). */

import { createSignal } from "solid-js";

export type SendKey = "enter" | "ctrl-enter";

const NAME = "send-key";
/** On a touch screen, the key of the on-screen keyboard is needed for line breaks. */
const isTouch = matchMedia("(pointer: coarse)").matches;
const stored = localStorage.getItem(NAME);
const [sendKey, setKey] = createSignal<SendKey>(stored === "enter" || stored === "ctrl-enter" ? stored : isTouch ? "ctrl-enter" : "enter");

export { sendKey };

export function chooseSendKey(key: SendKey): void {
  setKey(key);
  localStorage.setItem(NAME, key);
}

/** Whether this key sends the prompt. A key that confirms the input of an input method does not. */
export function isSendKey(event: KeyboardEvent, choice: SendKey): boolean {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.altKey) return false;
  return choice === "enter" || event.ctrlKey || event.metaKey;
}
