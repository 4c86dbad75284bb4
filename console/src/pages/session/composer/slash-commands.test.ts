/** Tests of the completion of commands. */

import { expect, test } from "vitest";
import { insertCommand, matchCommands } from "./slash-commands";

const commands = ["review", "preview", "init"].map((name) => ({ name, description: "" }));
const names = (text: string, caret = text.length): string[] => matchCommands(text, caret, commands).map((it) => it.name);

test("commands are offered for the first word of a prompt that begins with a slash", () => {
  expect(names("/")).toEqual(["review", "preview", "init"]);
  expect(names("/RE")).toEqual(["review", "preview"]);
  expect(names("/vie")).toEqual(["review", "preview"]);
  expect(names("/review now")).toEqual([]);
  expect(names("see /re")).toEqual([]);
  expect(names("")).toEqual([]);
});

test("the command replaces the first word and keeps the rest", () => {
  expect(insertCommand("/re", "review")).toBe("/review ");
  expect(insertCommand("/re the parser", "review")).toBe("/review the parser");
});
