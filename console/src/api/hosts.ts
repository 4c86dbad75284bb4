/** The hosts of a fleet. */

import { requestJson } from "./request";

export interface Host {
  name: string;
  /** `ready`, `draining` or `unreachable`. */
  state: string;
  /** The number of sessions that it owns. */
  sessions: number;
  /** The agents that it can start. */
  agents: string[];
  labels: Record<string, string>;
  load?: HostLoad | null;
}

export interface HostLoad {
  /** The number of running agents. */
  running: number;
  /** How many more it may start; absent without a limit. */
  free?: number | null;
}

/** Empty without a fleet. */
export const listHosts = async (): Promise<Host[]> => (await requestJson<{ hosts: Host[] }>("GET", "/api/hosts")).hosts;

/** Moves the sessions of a host to others: idle ones at once, others after their turn. */
export const drainHost = (name: string): Promise<void> =>
  requestJson("POST", `/api/hosts/${encodeURIComponent(name)}/drain`, { body: {} });
