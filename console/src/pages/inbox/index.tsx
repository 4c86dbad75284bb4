/** The page "Inbox": all open requests of all sessions, the oldest first, answered by keyboard or by touch. */

import { useNavigate } from "@solidjs/router";
import type { Ask } from "jackfield-client";
import { For, Show, createEffect, createMemo, createSignal, on, onCleanup, onMount, type JSX } from "solid-js";
import { unwrap } from "solid-js/store";
import type { AnsweredAsk } from "../../api/stream/messages";
import { sessionPath } from "../../app/navigate";
import { usePageTitle } from "../../app/page-title";
import { isListComplete, lastAnswered, openAsks } from "../../state/daemon";
import { AskCard } from "../../ui/ask-card";
import { askKey, describeAnswer } from "../../ui/ask-card/answer";
import { noteLayoutChange } from "../../ui/ask-card/layout-change";
import "../../ui/page.css";
import { isPlainKey } from "../../ui/plain-key";
import { visibleLine } from "../../ui/visible-text";
import "./inbox.css";
import { nextPosition } from "./position";

/** This many closed requests stay listed. */
const CLOSED_MAX = 5;

interface ClosedAsk {
  key: string;
  what: string;
  how: string;
}

export default function InboxPage(): JSX.Element {
  const keys = createMemo(() => openAsks.map(askKey));
  const closed = createClosedAsks();
  const navigate = useNavigate();
  usePageTitle(() => "Inbox");
  let list!: HTMLDivElement;

  const cards = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>(".ask-card")];
  const currentIndex = (): number => cards().findIndex((it) => it.contains(document.activeElement));
  const focusCard = (index: number): void => {
    const card = cards()[index];
    card?.focus({ preventScroll: true });
    card?.scrollIntoView({ block: "nearest" });
  };
  keepPlace(keys, currentIndex, focusCard);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isPlainKey(event)) return;
    if (event.key === "j" || event.key === "k") focusCard(nextPosition(currentIndex(), event.key === "j" ? 1 : -1, keys().length));
    const current = openAsks[currentIndex()];
    if (event.key === "o" && current !== undefined) navigate(sessionPath(current.sessionId));
  };
  onMount(() => document.addEventListener("keydown", onKeyDown));
  onCleanup(() => document.removeEventListener("keydown", onKeyDown));

  return (
    <div class="page inbox">
      <div class="page-header">
        <h1>Inbox</h1>
        <Show when={keys().length > 0}>
          <p class="inbox-keys">
            <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>1</kbd>–<kbd>9</kbd> <kbd>y</kbd> <kbd>n</kbd> answer · <kbd>o</kbd> open the session
          </p>
        </Show>
      </div>
      <div class="inbox-closed" role="log" aria-label="Requests that were answered">
        <For each={closed()}>
          {(it) => (
            <p>
              <span class="inbox-closed-what">{it.what}</span> {it.how}
            </p>
          )}
        </For>
      </div>
      <div class="inbox-list" ref={list}>
        <For each={keys()}>
          {(key) => <Show when={openAsks.find((it) => askKey(it) === key)}>{(ask) => <AskCard ask={ask()} />}</Show>}
        </For>
      </div>
      <Show when={keys().length === 0}>
        <p class="inbox-empty">
          {isListComplete() ? "Nothing waits for you. Requests of agents appear here as soon as they are made." : "Loading…"}
        </p>
      </Show>
    </div>
  );
}

/** When a card appears or disappears, the others move: clicks on them count later, and the keyboard keeps its place. */
function keepPlace(keys: () => string[], currentIndex: () => number, focusCard: (index: number) => void): void {
  let focused = -1;
  const remember = (): void => void (focused = currentIndex());
  document.addEventListener("focusin", remember);
  onCleanup(() => document.removeEventListener("focusin", remember));
  const isUnfocused = (): boolean => document.activeElement === document.body;
  // The first request has the focus when the page is opened, and not when one appears later.
  createEffect(on(isListComplete, (isComplete) => isComplete && queueMicrotask(() => isUnfocused() && focusCard(0))));
  createEffect(
    on(
      keys,
      (now) => {
        noteLayoutChange();
        // The focus of a removed card is on the body.
        if (focused >= 0 && isUnfocused()) focusCard(Math.min(focused, now.length - 1));
      },
      { defer: true },
    ),
  );
}

/** The requests that were answered since the page was opened, the latest first. */
function createClosedAsks(): () => ClosedAsk[] {
  const [closed, setClosed] = createSignal<ClosedAsk[]>([]);
  /** The rows are gone from the store when their answers arrive. */
  const known = new Map<string, Ask>();
  createEffect(() => openAsks.forEach((it) => known.set(askKey(it), structuredClone(unwrap(it)))));
  const describe = (answered: AnsweredAsk): ClosedAsk => {
    const ask = known.get(askKey(answered));
    const what = visibleLine(ask?.what ?? "").slice(0, 120) || `Request ${answered.ask}`;
    return { key: askKey(answered), what, how: visibleLine(describeAnswer(answered, ask)) };
  };
  createEffect(
    on(lastAnswered, (answers) => setClosed((before) => [...answers.map(describe), ...before].slice(0, CLOSED_MAX)), { defer: true }),
  );
  return closed;
}
