/**
 * A request of an agent to the user: what it wants, where, why no rule decided, and one button and key for each answer.
 *
 * Everything the agent wrote is shown as text. See `answer-guard.ts` for when a key or click counts.
 */

import { A } from "@solidjs/router";
import type { Answer, Ask } from "jackfield-client";
import { Match, Show, Switch, createEffect, createSignal, createUniqueId, onCleanup, onMount, type JSX } from "solid-js";
import { sessionPath } from "../../app/navigate";
import { sessionRow } from "../../state/session-row";
import { isPlainKey } from "../plain-key";
import { TimeAgo } from "../time-ago";
import { shortLine, visibleLine, visibleProse } from "../visible-text";
import { createAnswerSender, type AnswerState } from "./answer";
import { AnswerGuard, GUARD_MS } from "./answer-guard";
import { cutText, describeKind } from "./ask-call";
import "./ask-card.css";
import { AskDetails } from "./ask-details";
import { AskFacts } from "./ask-facts";
import { AskForm } from "./ask-form";
import { AskOptions } from "./ask-options";
import { AskPage } from "./ask-page";
import { layoutChangedAt } from "./layout-change";
import { optionOfKey } from "./option-keys";

/** The title is the agent's text; what will be done is in the facts, which are complete. */
const TITLE_CHARS_MAX = 300;

interface AskCardProps {
  ask: Ask;
  /** In the transcript of its session: the session is not named. */
  isInline?: boolean;
}

/** A card of another request is another card: neither its focus time nor its answer is kept. */
export function AskCard(props: AskCardProps): JSX.Element {
  return (
    <Show when={`${props.ask.sessionId}/${props.ask.ask}`} keyed>
      {(_key) => <OneAsk {...props} />}
    </Show>
  );
}

function OneAsk(props: AskCardProps): JSX.Element {
  const titleId = createUniqueId();
  const guard = new AnswerGuard();
  const { sessionId, ask } = props.ask;
  const { state, send } = createAnswerSender({ sessionId, ask });
  const [isIgnored, setIgnored] = createSignal(false);
  const isDisabled = (): boolean => state().status !== "open" && state().status !== "failed";
  const [isEarly, setEarly] = createSignal(true);
  let card!: HTMLElement;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Starts the interval of the guard again. */
  const onPlaceChange = (): void => {
    setEarly(true);
    clearTimeout(timer);
    timer = setTimeout(() => setEarly(!guard.acceptsClick(performance.now())), GUARD_MS + 10);
  };
  createEffect(() => {
    guard.setMoved(layoutChangedAt());
    onPlaceChange();
  });
  onMount(() => onCleanup(watchVisibility(card, guard, onPlaceChange)));
  onCleanup(() => clearTimeout(timer));

  /** Whether the event counts as an answer. A click without a pointer comes from a key. */
  const accepts = (event: Event): boolean => {
    const isKey = !(event instanceof MouseEvent) || event.detail === 0;
    const isAccepted = isKey ? guard.acceptsKey(event.timeStamp) : guard.acceptsClick(event.timeStamp);
    setIgnored(!isAccepted);
    return isAccepted && !isDisabled();
  };
  const answer = (event: Event, body: Answer, label: string): boolean => {
    const isAccepted = accepts(event);
    if (isAccepted) void send(body, label);
    return isAccepted;
  };
  const choose = (option: Ask["options"][number], event: Event): boolean => answer(event, { option: option.optionId }, visibleLine(option.name));
  const decline = (event: Event): boolean => answer(event, { result: { action: "decline" } }, "Declined");
  const cancel = (event: Event): boolean => answer(event, { result: { action: "cancel" } }, "Canceled");

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isPlainKey(event) || event.repeat) return;
    const option = optionOfKey(props.ask.options, event.key);
    if (option === undefined) return;
    event.preventDefault();
    choose(option, event);
  };

  return (
    <article
      class="ask-card"
      ref={card}
      tabindex="0"
      aria-labelledby={titleId}
      data-ask={`${sessionId}/${ask}`}
      onKeyDown={onKeyDown}
      onFocusIn={() => guard.setFocused(true, performance.now())}
      onFocusOut={(event) => !card.contains(event.relatedTarget as Node | null) && guard.setFocused(false, performance.now())}
    >
      <AskHeading {...props} titleId={titleId} />
      <Show when={props.ask.method !== "elicitation/create"}>
        <AskFacts ask={props.ask} />
        <AskDetails ask={props.ask} />
      </Show>
      <Switch
        fallback={
          <AskOptions
            ask={props.ask}
            isDisabled={isDisabled()}
            isEarly={isEarly()}
            onChoose={choose}
            onDeny={(event) => answer(event, { option: "deny" }, "Denied")}
          />
        }
      >
        <Match when={props.ask.url}>
          {(url) => (
            <AskPage
              url={url()}
              isDisabled={isDisabled()}
              isEarly={isEarly()}
              onOpen={(event) => answer(event, { result: { action: "accept" } }, "Opened")}
              onDecline={decline}
              onCancel={cancel}
            />
          )}
        </Match>
        <Match when={props.ask.method === "elicitation/create"}>
          <AskForm
            schema={props.ask.requestedSchema}
            isDisabled={isDisabled()}
            isEarly={isEarly()}
            onAccept={(content, event) => answer(event, { result: { action: "accept", content } }, "the form was sent")}
            onDecline={decline}
            onCancel={cancel}
          />
        </Match>
      </Switch>
      <p class="ask-state" classList={{ "is-failed": state().status === "failed" }} role="status">
        {isIgnored() && !isDisabled() ? "That was too early: the request has just appeared. Answer again." : describeState(state())}
      </p>
    </article>
  );
}

function AskHeading(props: AskCardProps & { titleId: string }): JSX.Element {
  const session = () => sessionRow(props.ask.sessionId);
  const sessionName = (): string => shortLine(session()?.name || session()?.title || "", 80) || props.ask.sessionId;
  const directory = (): string => session()?.cwd ?? "";
  return (
    <header class="ask-heading">
      <h2 id={props.titleId}>
        <span class="ask-kind">{describeKind(props.ask)}</span> <span class="ask-title">{visibleProse(cutText(props.ask.what ?? "", TITLE_CHARS_MAX))}</span>
      </h2>
      <p class="ask-where">
        <Show when={!props.isInline}>
          <A href={sessionPath(props.ask.sessionId)}>{sessionName()}</A>
          {" · "}
        </Show>
        {visibleLine(props.ask.agent)}
        <Show when={directory()}>
          {" · "}
          <span class="ask-directory">{visibleLine(directory())}</span>
        </Show>
        {" · "}
        <TimeAgo at={props.ask.since} />
      </p>
    </header>
  );
}

function describeState(state: AnswerState): string {
  switch (state.status) {
    case "open":
      return "";
    case "sending":
      return `Sending: ${state.label}…`;
    case "sent":
      return `You answered: ${state.label}`;
    case "closed":
      return `Not answered by you: ${state.why}`;
    case "failed":
      return `The answer was not sent: ${state.why}`;
  }
}

/** Tells the guard when the answers of the card come into view; returns the end of it. */
function watchVisibility(card: HTMLElement, guard: AnswerGuard, onChange: () => void): () => void {
  let isInView = false;
  const update = (): void => {
    guard.setVisible(isInView && document.visibilityState === "visible", performance.now());
    onChange();
  };
  const observer = new IntersectionObserver((entries) => {
    isInView = entries.at(-1)?.isIntersecting ?? false;
    update();
  });
  observer.observe(card.querySelector(".ask-options") ?? card);
  document.addEventListener("visibilitychange", update);
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", update);
  };
}
