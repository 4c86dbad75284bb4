/** A row of the list of sessions, with the members that older daemons do not send. */

import type { Session } from "jackfield-client";
import type { Cost } from "../ui/format";
import { sessionRows } from "./daemon";

export type SessionRow = Session & {
  /** The name that the user gave. */
  name?: string | null;
  /** What the agent has reported so far. */
  cost?: Cost | null;
  /** The host of a fleet. */
  host?: string | null;
  /** The last words of the agent or the user. */
  lastText?: string | null;
};

/** The row of a session, if it is known. */
export const sessionRow = (sessionId: string): SessionRow | undefined => sessionRows[sessionId];
