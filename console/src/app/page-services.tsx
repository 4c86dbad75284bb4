/** What every page has and does not show: the title of the document, and keys that work everywhere. */

import { createEffect, onCleanup, onMount, type JSX } from "solid-js";
import { openAsks } from "../state/daemon";
import { isPlainKey } from "../ui/plain-key";
import { navigateTo, provideNavigation } from "./navigate";
import { pageTitle } from "./page-title";

export function PageServices(): JSX.Element {
  provideNavigation();
  createEffect(() => {
    const count = openAsks.length;
    document.title = `${count > 0 ? `(${count}) ` : ""}${pageTitle()}`;
  });
  onMount(() => document.addEventListener("keydown", onKeyDown));
  onCleanup(() => document.removeEventListener("keydown", onKeyDown));
  return null;
}

/** The pages, by the key that follows `g`. */
const PAGE_KEYS: Record<string, string> = { s: "/", i: "/inbox", u: "/usage", a: "/agents", f: "/fleet", d: "/devices" };
const SEQUENCE_MS = 1500;
let pressedG = -Infinity;

/** `n` opens the dialog for a new session, `i` the inbox, `g` and a letter a page, `?` the list of keys. */
function onKeyDown(event: KeyboardEvent): void {
  if (!isPlainKey(event) || event.repeat) return;
  const page = event.timeStamp - pressedG < SEQUENCE_MS ? PAGE_KEYS[event.key] : undefined;
  pressedG = event.key === "g" ? event.timeStamp : -Infinity;
  if (page !== undefined) {
    event.preventDefault();
    navigateTo(page);
  } else if (event.key === "?") {
    event.preventDefault();
    void import("./keyboard-help").then(({ openKeyboardHelp }) => openKeyboardHelp());
  } else if (event.key === "n" && !isInAsk(event)) {
    event.preventDefault();
    void import("../ui/new-session").then(({ openNewSession }) => openNewSession());
  } else if (event.key === "i") {
    navigateTo("/inbox");
  }
}

/** In a request to the user, `n` is an answer. */
const isInAsk = (event: KeyboardEvent): boolean => (event.target as HTMLElement).closest(".ask-card") !== null;
