/** The agents by what the user can do with them. */

import type { Agent } from "jackfield-client";

/** A known problem of an agent, with its fix. */
export interface Diagnostic {
  severity: string;
  message: string;
  fix?: string | null;
}

export interface AgentGroups {
  ready: Agent[];
  /** Installed, but logged out or broken. */
  blocked: Agent[];
  missing: Agent[];
}

export const isLoggedOut = (agent: Agent): boolean => agent.authState === "missing";

/** The agents whose id, names or program contain the text. */
export function filterAgents(agents: readonly Agent[], text: string): Agent[] {
  const wanted = text.trim().toLowerCase();
  const names = (it: Agent): string => [it.id, it.name, it.bin, ...(it.aliases ?? [])].join(" ").toLowerCase();
  return agents.filter((it) => names(it).includes(wanted));
}

/** Keeps the order of the daemon inside each group. */
export function groupAgents(agents: readonly Agent[]): AgentGroups {
  const groups: AgentGroups = { ready: [], blocked: [], missing: [] };
  for (const agent of agents) {
    const isInstalled = agent.available || agent.path != null;
    if (!isInstalled) groups.missing.push(agent);
    else if (!agent.available || isLoggedOut(agent)) groups.blocked.push(agent);
    else groups.ready.push(agent);
  }
  return groups;
}

export const diagnosticsOf = (agent: Agent): Diagnostic[] => agent.diagnostics as unknown as Diagnostic[];

/** The models without the entry for the default of the program. */
export const modelsOf = (agent: Agent): string[] => agent.models.filter((it) => it.id !== "default").map((it) => it.label);
