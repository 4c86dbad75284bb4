/** The files that a session has changed. */

import type { SessionChanges } from "jackfield-client";
import { api } from "./client";

export type { SessionChanges };
export type TurnChanges = SessionChanges["turns"][number];
/** A file that tool calls of one turn have changed. */
export type TurnFile = TurnChanges["files"][number];
/** A file that differs from the last commit. Lines are unknown for binary files and for new ones. */
export type ChangedFile = NonNullable<SessionChanges["git"]>["files"][number];
export type FileStatus = ChangedFile["status"];

export const readChanges = (sessionId: string): Promise<SessionChanges> => api.sessions.changes(sessionId);

/** The difference between the working tree and the last commit, for one file. */
export const readGitDiff = (sessionId: string, path: string): Promise<string> => api.sessions.diff(sessionId, path);
