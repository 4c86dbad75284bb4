/** The changes of all turns of a session, by file. */

import type { ChangedFile, FileStatus, TurnChanges, TurnFile } from "../../../api/changes";

/** A file with its changes in each turn, the first turn first. */
export interface SessionFile extends ChangedFile {
  turns: { turn: number; file: TurnFile }[];
}

/** Files in the order of their paths. A file that was added and deleted again is listed: its turns show how. */
export function mergeTurns(turns: readonly TurnChanges[]): SessionFile[] {
  const byPath = new Map<string, SessionFile>();
  for (const { turn, files } of turns) {
    for (const file of files) {
      const known = byPath.get(file.path);
      byPath.set(file.path, {
        path: file.path,
        status: known === undefined ? file.status : mergeStatus(known.status, file.status),
        additions: (known?.additions ?? 0) + (file.additions ?? 0),
        deletions: (known?.deletions ?? 0) + (file.deletions ?? 0),
        turns: [...(known?.turns ?? []), { turn, file }],
      });
    }
  }
  return [...byPath.values()].toSorted((a, b) => a.path.localeCompare(b.path));
}

function mergeStatus(first: FileStatus, next: FileStatus): FileStatus {
  if (next === "deleted") return "deleted";
  return first === "added" ? "added" : "modified";
}

/** Sums of lines over files. */
export const sumLines = (files: readonly ChangedFile[]): { additions: number; deletions: number } => ({
  additions: files.reduce((sum, it) => sum + (it.additions ?? 0), 0),
  deletions: files.reduce((sum, it) => sum + (it.deletions ?? 0), 0),
});

/** The path below the working directory, or as it is. */
export const shortPath = (path: string, cwd: string | undefined): string =>
  cwd !== undefined && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
