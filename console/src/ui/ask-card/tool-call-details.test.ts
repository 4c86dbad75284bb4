/** Tests of the details of a tool call from the log. */

import type { Ask } from "jackfield-client";
import { expect, test } from "vitest";
import { toolDiffs, toolOutput } from "../../transcript/tool-call";
import { mergeToolCall } from "./tool-call-details";

const ask = { sessionId: "s-1", ask: 2, toolCallId: "t", options: [] } as unknown as Ask;
const diff = (newText: string) => ({ type: "diff", path: "/a", oldText: "x", newText });
const said = (seq: number, update: object) => ({ seq, at: 0, is: "said", frame: { params: { update } } });
const asked = (seq: number, number: number, toolCall: object) => ({ seq, at: 0, is: "asked", ask: number, frame: { params: { toolCall } } });

test("the content of the request replaces the content of its tool call", () => {
  const call = mergeToolCall(
    [
      said(1, { sessionUpdate: "tool_call", toolCallId: "t", content: [diff("first")] }),
      said(2, { sessionUpdate: "tool_call", toolCallId: "other", content: [diff("other")] }),
      asked(3, 1, { toolCallId: "u", content: [diff("another request")] }),
      asked(4, 2, { toolCallId: "t", content: [diff("second"), { type: "content", content: { type: "text", text: "why" } }] }),
    ],
    ask,
  );
  expect(toolDiffs(call)).toEqual([{ path: "/a", oldText: "x", newText: "second", isNew: false }]);
  expect(toolOutput(call)).toBe("why");
});

test("a request without content has the last content of its tool call", () => {
  const call = mergeToolCall(
    [
      said(1, { sessionUpdate: "tool_call", toolCallId: "t" }),
      said(2, { sessionUpdate: "tool_call_update", toolCallId: "t", content: [{ ...diff("new"), oldText: null }] }),
      asked(3, 2, { toolCallId: "t", title: "Write" }),
    ],
    ask,
  );
  expect(toolDiffs(call)).toMatchObject([{ path: "/a", newText: "new", isNew: true }]);
});
