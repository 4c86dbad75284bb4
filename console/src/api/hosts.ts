/** The hosts of a fleet. */

import type { Host } from "jackfield-client";
import { api } from "./client";

export type { Host };

/** Empty without a fleet. */
export const listHosts = (): Promise<Host[]> => api.hosts.list();

/** Moves the sessions of a host to others, idle ones at once, others after their turn; or lets it accept sessions again. */
export const drainHost = (name: string, drain: boolean): Promise<number> => api.hosts.drain(name, drain);
