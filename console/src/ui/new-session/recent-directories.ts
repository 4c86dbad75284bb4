/** The directories of sessions, the latest used first. */

import type { Session } from "jackfield-client";

const SHOWN_MAX = 20;

export function recentDirectories(sessions: Iterable<Pick<Session, "cwd" | "updatedAt">>): string[] {
  const latest = new Map<string, string>();
  for (const { cwd, updatedAt } of sessions) if (cwd !== "" && (latest.get(cwd) ?? "") < updatedAt) latest.set(cwd, updatedAt);
  const byTime = [...latest].sort(([, a], [, b]) => b.localeCompare(a));
  return byTime.slice(0, SHOWN_MAX).map(([cwd]) => cwd);
}
