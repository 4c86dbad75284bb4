/** One turn as a waterfall: a row per span, a bar that leads to its event, and zoom. */

import { A } from "@solidjs/router";
import { createMemo, createSignal, For, Show, type JSX } from "solid-js";
import type { TimelineSpan, TimelineTurn } from "../../../api/timeline";
import { sessionPath } from "../../../app/navigate";
import { now } from "../../../ui/clock";
import { formatDuration, formatNumberOf } from "../../../ui/format";
import { visibleLine } from "../../../ui/visible-text";
import { axisMarks, KIND_LABELS, placeSpan, spanTitle, turnExtent, type Extent } from "./spans";
import { TurnHeading } from "./turn-heading";

/** Turns with more spans are cut until the user wants all. */
const ROWS_MAX = 100;
const ZOOM_MAX = 64;

export function TurnWaterfall(props: { sessionId: string; turn: TimelineTurn }): JSX.Element {
  const [zoom, setZoom] = createSignal(1);
  const [isComplete, setComplete] = createSignal(false);
  const [pointed, setPointed] = createSignal<TimelineSpan>();
  const extent = createMemo(() => turnExtent(props.turn, now()));
  const spans = () => (isComplete() ? props.turn.spans : props.turn.spans.slice(0, ROWS_MAX));
  const hidden = () => props.turn.spans.length - spans().length;

  return (
    <section class="turn" aria-label={`Turn ${props.turn.turn}`}>
      <TurnHeading turn={props.turn}>
        <div class="turn-zoom" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" disabled={zoom() === 1} onClick={() => setZoom(zoom() / 2)}>
            −
          </button>
          <button type="button" aria-label="Zoom in" disabled={zoom() === ZOOM_MAX} onClick={() => setZoom(zoom() * 2)}>
            +
          </button>
        </div>
      </TurnHeading>
      <div class="waterfall" onKeyDown={moveFocus} onPointerLeave={() => setPointed(undefined)}>
        {/* The list scrolls when it is zoomed; each bar in it can have the focus. */}
        <div class="waterfall-rows" style={{ "--zoom": String(zoom()) }}>
          <Axis extent={extent()} zoom={zoom()} />
          <ul>
            <For each={spans()}>
              {(span) => <SpanRow sessionId={props.sessionId} span={span} extent={extent()} onPoint={setPointed} />}
            </For>
          </ul>
        </div>
      </div>
      <p class="span-details muted" aria-hidden="true">
        <Show when={pointed()} fallback={"\u00a0"}>
          {(span) => spanDescription(span())}
        </Show>
      </p>
      <Show when={hidden() > 0}>
        <button type="button" onClick={() => setComplete(true)}>
          Show {formatNumberOf(hidden(), "more span")}
        </button>
      </Show>
    </section>
  );
}

const spanDescription = (span: TimelineSpan): string =>
  [KIND_LABELS[span.kind], visibleLine(span.title ?? ""), formatDuration(span.durationMs), `starts after ${formatDuration(Math.max(0, span.startMs))}`]
    .filter(Boolean)
    .join(" · ");

function SpanRow(props: { sessionId: string; span: TimelineSpan; extent: Extent; onPoint(span: TimelineSpan): void }): JSX.Element {
  const place = () => placeSpan(props.span, props.extent);
  return (
    <li class="span-row">
      <A
        class="span-link"
        href={`${sessionPath(props.sessionId)}?event=${props.span.seq}`}
        aria-label={spanDescription(props.span)}
        onPointerEnter={() => props.onPoint(props.span)}
        onFocus={() => props.onPoint(props.span)}
      >
        <span class="span-title">
          <span class="span-swatch" data-kind={props.span.kind} />
          {spanTitle(props.span)}
        </span>
        <span class="span-track">
          <span class="span-bar" data-kind={props.span.kind} style={{ left: `${place().left}%`, width: `${place().width}%` }} />
        </span>
      </A>
    </li>
  );
}

function Axis(props: { extent: Extent; zoom: number }): JSX.Element {
  const left = (ms: number): string => `${((ms - props.extent.startMs) / (props.extent.endMs - props.extent.startMs)) * 100}%`;
  return (
    <div class="waterfall-axis" aria-hidden="true">
      <span class="span-title" />
      <span class="span-track">
        <For each={axisMarks(props.extent, 4 * props.zoom)}>
          {(ms) => (
            <span class="axis-mark" style={{ left: left(ms) }}>
              {formatDuration(Math.abs(ms))}
            </span>
          )}
        </For>
      </span>
    </div>
  );
}

/** Arrow keys move between the bars of a turn. */
function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>(".span-link")];
  const next = links[links.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
