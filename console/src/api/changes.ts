/** The files that a session has changed. */

import { requestJson } from "./request";

export type FileStatus = "added" | "modified" | "deleted";

export interface ChangedFile {
  path: string;
  status: FileStatus;
  /** Lines; `null` for binary files, and in git for new ones. */
  additions: number | null;
  deletions: number | null;
}

/** A file that tool calls of one turn have changed. */
export interface TurnFile extends ChangedFile {
  /** Unified; absent if it is too long. */
  diff?: string | null;
  /** The events of the tool calls. */
  seqs: number[];
}

export interface TurnChanges {
  turn: number;
  files: TurnFile[];
}

export interface SessionChanges {
  turns: TurnChanges[];
  /** `null` if the working directory is not in a repository. */
  git: { branch?: string | null; files: ChangedFile[] } | null;
}

const changesPath = (sessionId: string): string => `/api/sessions/${encodeURIComponent(sessionId)}/changes`;

export const readChanges = (sessionId: string): Promise<SessionChanges> => requestJson("GET", changesPath(sessionId));

/** The difference between the working tree and the last commit, for one file. */
export const readGitDiff = async (sessionId: string, path: string): Promise<string> =>
  (await requestJson<{ diff: string }>("GET", `${changesPath(sessionId)}/diff`, { query: { path } })).diff;
