/** A tool call: what it does, its state and duration, its input and output, and the files that it changes. */

import { createEffect, createMemo, createSignal, For, onCleanup, Show, type JSX } from "solid-js";
import { formatDuration } from "../../ui/format";
import { shortLine } from "../../ui/visible-text";
import type { ToolItem, ToolStatus } from "../item";
import { fencedOutput, hasEnded, toolDiffs, toolInput, toolMedia, toolOutput } from "../tool-call";
import { CodeBlock } from "./code-block";
import { DiffView } from "./diff-view";
import { LongText } from "./long-text";
import { MarkdownView, MessageParts } from "./message-parts";
import { useTranscriptView } from "./view-state";

const STATUS: Record<ToolStatus, { icon: string; text: string }> = {
  pending: { icon: "○", text: "waiting" },
  running: { icon: "◐", text: "running" },
  done: { icon: "✓", text: "done" },
  failed: { icon: "✗", text: "failed" },
  cancelled: { icon: "⊘", text: "cancelled" },
  unfinished: { icon: "?", text: "no result" },
};

/** Calls that change something are shown open. */
const OPEN_KINDS = ["edit", "delete", "move", "execute"];

export function ToolCard(props: { item: ToolItem }): JSX.Element {
  const view = useTranscriptView();
  const key = (): string => `tool-${props.item.turn}-${props.item.callId}`;
  const isOpenFirst = (): boolean => OPEN_KINDS.includes(props.item.toolKind) || props.item.status === "failed";
  const isOpen = (): boolean => view.isOpen(key(), isOpenFirst());
  const title = (): string => shortLine(props.item.title) || props.item.toolKind || "Tool call";
  return (
    <div class={`tool-card tool-${props.item.status}`} classList={{ "tool-nested": props.item.parentId !== "" }}>
      <button type="button" class="tool-header" aria-expanded={isOpen()} onClick={() => view.setOpen(key(), !isOpen())}>
        <span class="tool-icon" aria-hidden="true">
          {STATUS[props.item.status].icon}
        </span>
        <span class="tool-title">{title()}</span>
        <Show when={props.item.toolKind !== "" && props.item.toolKind !== "other"}>
          <span class="tool-kind">{shortLine(props.item.toolKind, 20)}</span>
        </Show>
        <span class="tool-state">
          {STATUS[props.item.status].text} <ToolDuration item={props.item} />
        </span>
      </button>
      <Show when={isOpen()}>
        <ToolBody item={props.item} stateKey={key()} />
      </Show>
    </div>
  );
}

/** How long the call took, or takes so far. */
function ToolDuration(props: { item: ToolItem }): JSX.Element {
  const [now, setNow] = createSignal(Date.now());
  createEffect(() => {
    if (hasEnded(props.item.status)) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    onCleanup(() => clearInterval(timer));
  });
  const ms = (): number => (props.item.endedAt ?? Math.max(now(), props.item.at)) - props.item.at;
  return <Show when={ms() >= 100}>{formatDuration(ms())}</Show>;
}

function ToolBody(props: { item: ToolItem; stateKey: string }): JSX.Element {
  const diffs = createMemo(() => toolDiffs(props.item));
  // The input of an edit is the difference once more.
  const input = createMemo(() => (diffs().length > 0 ? undefined : toolInput(props.item)));
  const output = createMemo(() => toolOutput(props.item));
  const media = createMemo(() => toolMedia(props.item));
  const fenced = createMemo(() => fencedOutput(output()));
  const isMarkdown = (): boolean => fenced() === undefined && /^\s*```/.test(output()) && output().length < 20_000;
  return (
    <div class="tool-body">
      <Show when={input()}>{(it) => <CodeBlock text={it().text} language={it().language} />}</Show>
      <For each={diffs()}>{(it, index) => <DiffView diff={it} stateKey={`${props.stateKey}-${index()}`} />}</For>
      <Show when={output() !== ""}>
        <Show when={isMarkdown()} fallback={<LongText text={fenced() ?? output()} isTerminal label="Output" />}>
          <MarkdownView text={output()} />
        </Show>
      </Show>
      <MessageParts parts={media()} />
      <Show when={props.item.locations.length > 0 && diffs().length === 0}>
        <ul class="tool-locations" aria-label="Files">
          <For each={props.item.locations.slice(0, 20)}>
            {(it) => (
              <li>
                {shortLine(it.path)}
                {it.line === undefined ? "" : `:${it.line}`}
              </li>
            )}
          </For>
        </ul>
      </Show>
    </div>
  );
}
