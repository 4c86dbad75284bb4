/** Tests of the prompt history. */

import { expect, test } from "vitest";
import { PromptHistory, promptText } from "./prompt-history";

test("the arrows walk from the last prompt to the first and back to the empty box", () => {
  const history = new PromptHistory(["a", "b", "b", " ", "c"]);
  expect([history.previous(), history.previous(), history.previous(), history.previous()]).toEqual(["c", "b", "a", undefined]);
  expect([history.next(), history.next(), history.next(), history.next()]).toEqual(["b", "c", "", undefined]);
});

test("after an edit or a new prompt the walk starts at the end", () => {
  const history = new PromptHistory(["a", "b"]);
  history.previous();
  history.previous();
  history.leave();
  expect(history.isBrowsing).toBe(false);
  history.add("c");
  expect([history.previous(), history.previous()]).toEqual(["c", "b"]);
});

test("the text of a prompt comes from the event that has its frame", () => {
  const frame = { params: { prompt: [{ type: "text", text: "one" }, { type: "image", data: "" }, { type: "text", text: "two" }] } };
  expect(promptText({ seq: 1, at: 0, is: "queued", prompt: 1, frame })).toBe("one\ntwo");
  expect(promptText({ seq: 2, at: 0, is: "prompted", turn: 1, frame })).toBe("one\ntwo");
  expect(promptText({ seq: 3, at: 0, is: "prompted", turn: 1, prompt: 1, frame: {} })).toBeUndefined();
  expect(promptText({ seq: 4, at: 0, is: "said", frame })).toBeUndefined();
});
