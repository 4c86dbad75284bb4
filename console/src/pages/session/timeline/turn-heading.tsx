/** The heading of a turn: when, how long, how it ended, and the time by kind. */

import { For, Show, type JSX } from "solid-js";
import type { TimelineTurn } from "../../../api/timeline";
import { now } from "../../../ui/clock";
import { formatCompact, formatCost, formatDuration } from "../../../ui/format";
import { TimeAgo } from "../../../ui/time-ago";
import { visibleLine } from "../../../ui/visible-text";
import { KIND_LABELS, sumByKind, turnExtent } from "./spans";

export function TurnHeading(props: { turn: TimelineTurn; children?: JSX.Element }): JSX.Element {
  const duration = () => turnExtent(props.turn, now()).endMs;
  const tokens = () => props.turn.usage?.tokens?.total;
  return (
    <>
      <div class="turn-head">
        <h2>Turn {props.turn.turn}</h2>
        <span class="muted">
          <TimeAgo at={props.turn.startedAt} /> · {formatDuration(duration())} ·{" "}
          {props.turn.endedAt == null ? "running" : visibleLine(props.turn.outcome ?? "ended")}
          <Show when={props.turn.by}> · by {visibleLine(props.turn.by)}</Show>
          <Show when={tokens()}>{(it) => <> · {formatCompact(it())} tokens</>}</Show>
          <Show when={props.turn.usage?.cost}>{(it) => <> · {formatCost(it())}</>}</Show>
        </span>
        {props.children}
      </div>
      <ul class="turn-sums" aria-label="Time by kind">
        <For each={sumByKind(props.turn.spans)}>
          {(it) => (
            <li>
              <span class="span-swatch" data-kind={it.kind} aria-hidden="true" /> {KIND_LABELS[it.kind]}{" "}
              {formatDuration(it.durationMs)}
            </li>
          )}
        </For>
      </ul>
    </>
  );
}
