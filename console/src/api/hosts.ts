/** The hosts of a fleet. */

import { requestJson } from "./request";

export interface Host {
  name: string;
  state: "online" | "draining";
  version: string;
  /** The number of sessions that it owns. */
  sessions: number;
  /** The agents that it can start. */
  agents: string[];
  labels: Record<string, string>;
  /** The number of running agents. */
  running: number;
  /** How many more agents it may start; `null` without a limit. */
  free: number | null;
}

/** Empty without a fleet. */
export const listHosts = async (): Promise<Host[]> => (await requestJson<{ hosts: Host[] }>("GET", "/api/hosts")).hosts;

/** Moves the sessions of a host to others, idle ones at once, others after their turn; or lets it accept sessions again. */
export const drainHost = (name: string, drain: boolean): Promise<{ sessions: number }> =>
  requestJson("POST", `/api/hosts/${encodeURIComponent(name)}/drain`, { body: { drain } });
