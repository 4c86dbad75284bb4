/** A row of the list of sessions. */

import type { Session } from "jackfield-client";
import { sessionRows } from "./daemon";

export type SessionRow = Session;

/** The row of a session, if it is known. */
export const sessionRow = (sessionId: string): SessionRow | undefined => sessionRows[sessionId];
