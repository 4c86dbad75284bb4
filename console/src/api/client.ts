/** The client of the API of the daemon that served this page. The login is a cookie, which scripts cannot read. */

import { Jackfield, JackfieldError } from "jackfield-client";

/** Unit tests have no page. */
const origin = globalThis.location?.origin ?? "http://localhost";

export const api = new Jackfield({ url: origin });

/** Whether the login is missing, expired or revoked. */
export const isSignedOut = (error: unknown): boolean => error instanceof JackfieldError && error.status === 401;

/** The text of an error for the user. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));
