/** Tests of the keys of options. */

import { expect, test } from "vitest";
import { keysOfOption, kindInWords, optionOfKey } from "./option-keys";

const option = (kind: string, optionId = kind) => ({ optionId, kind, name: optionId });

test("each option has its number in the order of the agent, and y and n are the ones that apply once", () => {
  const options = [option("reject_once"), option("allow_always"), option("allow_once"), option("allow_once", "second")];
  expect(options.map((_, index) => keysOfOption(options, index))).toEqual([["1", "n"], ["2"], ["3", "y"], ["4"]]);
  expect(optionOfKey(options, "y")?.optionId).toBe("allow_once");
  expect(optionOfKey(options, "4")?.optionId).toBe("second");
  expect(optionOfKey(options, "5")).toBeUndefined();
});

test("no key allows always except its number, and the tenth option has no key", () => {
  const options = [...Array(10)].map((_, index) => option("allow_always", `o${index}`));
  expect(optionOfKey(options, "y")).toBeUndefined();
  expect(keysOfOption(options, 9)).toEqual([]);
});

test("an unknown kind is shown as it is", () => {
  expect(kindInWords("allow_once")).toBe("allow this once");
  expect(kindInWords("approve_for_session")).toBe("approve_for_session");
});
