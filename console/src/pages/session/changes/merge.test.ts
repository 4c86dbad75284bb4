import { expect, test } from "vitest";
import type { FileStatus, TurnFile } from "../../../api/changes";
import { mergeTurns, shortPath, sumLines } from "./merge";

const file = (path: string, status: FileStatus, additions = 1, deletions = 0): TurnFile => ({ path, status, additions, deletions, seqs: [1] });

test("changes of a file in several turns are summed", () => {
  const merged = mergeTurns([
    { turn: 1, files: [file("b", "modified", 2, 1), file("a", "added", 9)] },
    { turn: 3, files: [file("b", "modified", 3), file("a", "modified", 1)] },
  ]);
  expect(merged.map((it) => [it.path, it.status, it.additions, it.deletions, it.turns.length])).toEqual([
    ["a", "added", 10, 0, 2],
    ["b", "modified", 5, 1, 2],
  ]);
  expect(sumLines(merged)).toEqual({ additions: 15, deletions: 1 });
});

test("a file that is deleted at last is deleted, and one that comes back is not", () => {
  const status = (...all: FileStatus[]) => mergeTurns(all.map((it, index) => ({ turn: index + 1, files: [file("a", it)] })))[0]?.status;
  expect(status("added", "deleted")).toBe("deleted");
  expect(status("modified", "deleted", "added")).toBe("modified");
});

test("paths are shown below the working directory", () => {
  expect(shortPath("/srv/project/src/a.rs", "/srv/project")).toBe("src/a.rs");
  expect(shortPath("/srv/project-2/a.rs", "/srv/project")).toBe("/srv/project-2/a.rs");
});
