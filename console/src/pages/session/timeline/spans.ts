/** The geometry of a turn: its extent, the place of each span, and the time by kind. */

import type { SpanKind, TimelineSpan, TimelineTurn } from "../../../api/timeline";
import { visibleLine } from "../../../ui/visible-text";

export const KINDS: SpanKind[] = ["queue", "model", "thinking", "text", "tool", "ask"];

export const KIND_LABELS: Record<SpanKind, string> = {
  queue: "Queue",
  model: "Waiting for the model",
  thinking: "Thinking",
  text: "Text",
  tool: "Tool",
  ask: "Waiting for you",
};

/** A turn shorter than this is drawn as if it took this time. */
const EXTENT_MS_MIN = 1;

export interface Extent {
  startMs: number;
  endMs: number;
}

/** From the first to the last moment of a turn, relative to its start. A running turn ends now. */
export function turnExtent(turn: TimelineTurn, now: number): Extent {
  const ends = turn.spans.map((it) => it.startMs + it.durationMs);
  const ended = turn.endedAt == null ? Math.max(0, ...ends, now - turn.startedAt) : turn.endedAt - turn.startedAt;
  const startMs = Math.min(0, ...turn.spans.map((it) => it.startMs));
  return { startMs, endMs: Math.max(startMs + EXTENT_MS_MIN, ended, ...ends) };
}

/** Left edge and width in percent of the extent. */
export function placeSpan(span: TimelineSpan, extent: Extent): { left: number; width: number } {
  const total = extent.endMs - extent.startMs;
  return { left: ((span.startMs - extent.startMs) / total) * 100, width: (span.durationMs / total) * 100 };
}

/** The time of each kind that occurs. Spans of a kind that overlap, such as parallel tools, count once. */
export function sumByKind(spans: readonly TimelineSpan[]): { kind: SpanKind; durationMs: number }[] {
  return KINDS.flatMap((kind) => {
    const ofKind = spans.filter((it) => it.kind === kind).toSorted((a, b) => a.startMs - b.startMs);
    let [durationMs, coveredTo] = [0, -Infinity];
    for (const { startMs, durationMs: length } of ofKind) {
      const from = Math.max(startMs, coveredTo);
      durationMs += Math.max(0, startMs + length - from);
      coveredTo = Math.max(coveredTo, startMs + length);
    }
    return ofKind.length === 0 ? [] : [{ kind, durationMs }];
  });
}

export const spanTitle = (span: TimelineSpan): string => visibleLine(span.title ?? "") || KIND_LABELS[span.kind];

/** About four marks of the time axis, at round values. */
export function axisMarks(extent: Extent, count: number): number[] {
  const rough = (extent.endMs - extent.startMs) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough) ?? rough;
  const first = Math.ceil(extent.startMs / step);
  const last = Math.floor(extent.endMs / step);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step || 0);
}
