/** Tests of the recent directories. */

import { expect, test } from "vitest";
import { recentDirectories } from "./recent-directories";

test("each directory is listed once, by its latest session", () => {
  const rows = [
    { cwd: "/a", updatedAt: "2026-11-01T00:00:00Z" },
    { cwd: "/b", updatedAt: "2026-11-03T00:00:00Z" },
    { cwd: "/a", updatedAt: "2026-11-05T00:00:00Z" },
    { cwd: "", updatedAt: "2026-11-06T00:00:00Z" },
  ];
  expect(recentDirectories(rows)).toEqual(["/a", "/b"]);
});
