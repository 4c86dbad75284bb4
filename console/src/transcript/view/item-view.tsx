/** One row of a transcript. */

import { createMemo, For, Match, Show, Switch, type JSX } from "solid-js";
import { formatClock, formatCost, formatCompact, formatDuration, formatDateTime } from "../../ui/format";
import { shortLine } from "../../ui/visible-text";
import { openAsks } from "../../state/daemon";
import { AskCard } from "../../ui/ask-card";
import { forkAt } from "../../ui/session-actions";
import type { AgentItem, AskItem, Item, NoticeItem, PlanItem, TurnEndItem } from "../item";
import { partsText } from "../item";
import type { Row } from "../rows";
import { LongText } from "./long-text";
import { MessageParts } from "./message-parts";
import { ToolCard } from "./tool-card";
import "./content.css";
import { useTranscriptView } from "./view-state";

type ItemOfKind<K> = Item extends infer T ? (T extends Item ? (K extends T["kind"] ? T : never) : never) : never;

export function ItemView(props: { row: Row }): JSX.Element {
  const view = useTranscriptView();
  const as = <K extends Item["kind"]>(kind: K): ItemOfKind<K> | undefined =>
    props.row.item.kind === kind ? (props.row.item as ItemOfKind<K>) : undefined;
  return (
    <>
      <div
        data-transcript-item
        data-kind={props.row.item.kind}
        data-first-seq={props.row.item.seq}
        class={`item item-${props.row.item.kind}`}
        classList={{ "item-continued": !props.row.isFirst, "item-cut": props.row.isCut, "item-target": view.target() === props.row.item.seq }}
      >
        <Switch>
          <Match when={as("user")}>
            {(it) => (
              <div class="prompt">
                <p class="item-meta">
                  {it().by === "" ? "User" : `Prompt by ${shortLine(it().by, 60)}`} · <Time at={it().at} />
                </p>
                <MessageParts parts={props.row.parts} isPlain />
              </div>
            )}
          </Match>
          <Match when={as("message")}>
            {(it) => (
              <>
                <Show when={it().isLate && props.row.isFirst}>
                  <p class="item-meta">Received after the end of the turn</p>
                </Show>
                <MessageParts parts={props.row.parts} />
              </>
            )}
          </Match>
          <Match when={as("thought")}>{(it) => <Thought item={it()} />}</Match>
          <Match when={as("tool")}>{(it) => <ToolCard item={it()} />}</Match>
          <Match when={as("plan")}>{(it) => <Plan item={it()} />}</Match>
          <Match when={as("ask")}>{(it) => <AskView item={it()} />}</Match>
          <Match when={as("turn-end")}>{(it) => <TurnEnd item={it()} />}</Match>
          <Match when={as("notice")}>{(it) => <Notice item={it()} />}</Match>
        </Switch>
      </div>
      <Show when={props.row.isFirst}>
        <ItemTools seq={props.row.item.seq} />
      </Show>
    </>
  );
}

const Time = (props: { at: number }): JSX.Element => (
  <time datetime={new Date(props.at).toISOString()} title={formatDateTime(props.at)}>
    {formatClock(props.at)}
  </time>
);

/** The link to an event, which a click copies, and a fork from it. They are shown at the row under the pointer or with the focus. */
function ItemTools(props: { seq: number }): JSX.Element {
  const view = useTranscriptView();
  const path = (): string => `/console/sessions/${encodeURIComponent(view.sessionId)}?event=${props.seq}`;
  const copy = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    history.replaceState(history.state, "", path());
    void navigator.clipboard?.writeText(new URL(path(), location.origin).href);
  };
  return (
    <div class="item-tools">
      <button type="button" class="quiet" title="Fork the session after this event" onClick={() => void forkAt(view.sessionId, props.seq)}>
        Fork<span class="visually-hidden"> after event {props.seq}</span>
      </button>
      <a href={path()} title={`Copy the link to event ${props.seq}`} aria-label={`Link to event ${props.seq}`} on:click={copy}>
        #
      </a>
    </div>
  );
}

function Thought(props: { item: AgentItem }): JSX.Element {
  const view = useTranscriptView();
  const isOpen = (): boolean => view.isOpen(props.item.key, false);
  const text = createMemo(() => partsText(props.item.parts));
  const seconds = (): string => {
    const ms = props.item.endedAt - props.item.at;
    return ms >= 1000 ? ` for ${formatDuration(ms)}` : "";
  };
  return (
    <div class="thought">
      <button type="button" class="thought-header" aria-expanded={isOpen()} onClick={() => view.setOpen(props.item.key, !isOpen())}>
        Thought{seconds()}
        <Show when={!isOpen()}>
          <span class="thought-preview">{shortLine(text().slice(-400), 160)}</span>
        </Show>
      </button>
      <Show when={isOpen()}>
        <MessageParts parts={props.item.parts} />
      </Show>
    </div>
  );
}

const PLAN_STATUS: Record<string, { icon: string; text: string }> = {
  completed: { icon: "✓", text: "done" },
  in_progress: { icon: "◐", text: "in progress" },
  pending: { icon: "○", text: "open" },
};

function Plan(props: { item: PlanItem }): JSX.Element {
  const done = (): number => props.item.entries.filter((it) => it.status === "completed").length;
  return (
    <section class="plan" aria-label="Plan">
      <p class="item-meta">
        Plan · {done()} of {props.item.entries.length} done
      </p>
      <ul>
        <For each={props.item.entries}>
          {(it) => {
            const status = PLAN_STATUS[it.status] ?? { icon: "○", text: "open" };
            return (
              <li class={`plan-${status.text.replace(" ", "-")}`}>
                <span class="plan-icon" aria-hidden="true">
                  {status.icon}
                </span>
                <span class="visually-hidden">{status.text}: </span>
                {shortLine(it.content, 1000)}
              </li>
            );
          }}
        </For>
      </ul>
    </section>
  );
}

/** A request: the card that answers it while it is open, then who answered what. */
function AskView(props: { item: AskItem }): JSX.Element {
  const view = useTranscriptView();
  const open = createMemo(() => {
    if (props.item.answer) return undefined;
    return openAsks.find((it) => it.sessionId === view.sessionId && it.ask === props.item.ask);
  });
  const isRejected = (): boolean => /^reject/.test(props.item.answer?.optionKind ?? "");
  return (
    <Show
      when={open()}
      fallback={
        <p class="asked" classList={{ "asked-rejected": isRejected() }}>
          <span aria-hidden="true">{props.item.answer ? (isRejected() ? "✗" : "✓") : "?"}</span> Request:{" "}
          {shortLine(props.item.title) || "permission"}.{" "}
          <Show when={props.item.answer} fallback="Not answered">
            {(it) => (
              <>
                {shortLine(it().choice, 100)}
                {props.item.isAlways ? " (always)" : ""}, by {shortLine(it().by, 60)}
                {props.item.why === "" ? "" : `: ${shortLine(props.item.why)}`}
              </>
            )}
          </Show>
        </p>
      }
    >
      {(it) => <AskCard ask={it()} isInline />}
    </Show>
  );
}

const OUTCOMES = { completed: "Turn completed", cancelled: "Turn cancelled", failed: "Turn failed", interrupted: "Turn interrupted" } as const;

function TurnEnd(props: { item: TurnEndItem }): JSX.Element {
  const facts = (): string[] => {
    const { durationMs, tokens, cost, context } = props.item;
    const count = (it: number | undefined, name: string): string => (it === undefined ? "" : `${formatCompact(it)} ${name}`);
    return [
      durationMs === undefined ? "" : formatDuration(durationMs),
      count(tokens?.input, "in"),
      count(tokens?.cachedRead || undefined, "cached"),
      count(tokens?.output, "out"),
      cost === undefined ? "" : formatCost(cost),
      context?.size ? `context ${Math.round((context.used / context.size) * 100)}%` : "",
    ].filter((it) => it !== "");
  };
  return (
    <p class={`turn-end turn-${props.item.outcome}`}>
      <span class="turn-outcome">
        {OUTCOMES[props.item.outcome]}
        {props.item.detail === "" ? "" : `: ${shortLine(props.item.detail, 2000)}`}
      </span>
      <span class="turn-usage">{facts().join(" · ")}</span>
    </p>
  );
}

function Notice(props: { item: NoticeItem }): JSX.Element {
  return (
    <div class={`notice-${props.item.level}`}>
      <p>
        {shortLine(props.item.text, 2000)} · <Time at={props.item.at} />
      </p>
      <Show when={props.item.detail !== ""}>
        <LongText text={props.item.detail} isTerminal label="Details" />
      </Show>
    </div>
  );
}
