import { expect, test } from "vitest";
import type { SpanKind, TimelineSpan, TimelineTurn } from "../../../api/timeline";
import { axisMarks, placeSpan, sumByKind, turnExtent } from "./spans";

const span = (kind: SpanKind, startMs: number, durationMs: number): TimelineSpan => ({ kind, startMs, durationMs, seq: 1 });
const turn = (spans: TimelineSpan[], endedAt: number | null): TimelineTurn => ({ turn: 1, by: "cli", queuedMs: 0, startedAt: 1_000, endedAt, spans });

test("the time in the queue is before the start of the turn", () => {
  const extent = turnExtent(turn([span("queue", -500, 500), span("model", 0, 1_500)], 2_500), 9_999);
  expect(extent).toEqual({ startMs: -500, endMs: 1_500 });
  expect(placeSpan(span("model", 0, 1_500), extent)).toEqual({ left: 25, width: 75 });
});

test("a running turn extends to now, and an empty one has a length", () => {
  expect(turnExtent(turn([span("model", 0, 10)], null), 3_000)).toEqual({ startMs: 0, endMs: 2_000 });
  expect(turnExtent(turn([], 1_000), 3_000).endMs).toBeGreaterThan(0);
});

test("parallel tools count once in the sum", () => {
  const spans = [span("tool", 0, 100), span("tool", 50, 100), span("tool", 60, 10), span("ask", 0, 5)];
  expect(sumByKind(spans)).toEqual([{ kind: "tool", durationMs: 150 }, { kind: "ask", durationMs: 5 }]);
});

test("marks of the axis are at round values inside the extent", () => {
  expect(axisMarks({ startMs: -120, endMs: 980 }, 4)).toEqual([0, 500]);
  expect(axisMarks({ startMs: 0, endMs: 4_000 }, 4)).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
});
