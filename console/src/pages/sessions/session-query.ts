/** The filter and the order of the list of sessions. */

import type { SessionRow } from "../../state/session-row";
import { stateText } from "../../ui/state-text";

export type SortColumn = "attention" | "state" | "title" | "agent" | "project" | "host" | "updated" | "cost";
export interface SortOrder {
  column: SortColumn;
  isDescending: boolean;
}

/** What waits for the user comes first, then what changed last. */
export const DEFAULT_ORDER: SortOrder = { column: "attention", isDescending: true };

interface FilterTerm {
  field: "text" | "state" | "agent" | "project" | "host";
  value: string;
  isExcluded: boolean;
}

/** Parses `parser state:working -agent:codex "two words"`. All terms must match; `state:a,b` matches either. */
export function parseFilter(text: string): FilterTerm[] {
  const terms: FilterTerm[] = [];
  for (const match of text.matchAll(/(-)?(?:(state|agent|project|host):)?(?:"([^"]*)"?|(\S+))/gi)) {
    const value = (match[3] ?? match[4] ?? "").toLowerCase();
    if (value === "") continue;
    const field = (match[2]?.toLowerCase() ?? "text") as FilterTerm["field"];
    terms.push({ field, value, isExcluded: match[1] !== undefined });
  }
  return terms;
}

/** The last part of the working directory. */
export const projectOf = (cwd: string): string => /([^/\\]+)[/\\]*$/.exec(cwd)?.[1] ?? cwd;

export const titleOf = (row: SessionRow): string => row.name || row.title || row.sessionId;

/** What a row is searched for, in small letters. Rows are replaced when they change, never edited. */
const searchTexts = new WeakMap<SessionRow, string>();

function searchText(row: SessionRow): string {
  const known = searchTexts.get(row);
  if (known !== undefined) return known;
  const parts = [row.sessionId, row.name, row.title, row.agent, row.cwd, row.host];
  const text = parts.filter((it) => it !== undefined && it !== null).join("\n").toLowerCase();
  searchTexts.set(row, text);
  return text;
}

/** Prepares rows for the filter, so that the first typed letter is as fast as the others. */
export function prepareFilter(rows: readonly SessionRow[]): void {
  for (const it of rows) searchText(it);
}

function matchesTerm(row: SessionRow, { field, value, isExcluded }: FilterTerm): boolean {
  const isAny = (texts: string[]): boolean =>
    value.split(",").some((wanted) => wanted !== "" && texts.some((it) => it.toLowerCase().startsWith(wanted)));
  switch (field) {
    case "text":
      return searchText(row).includes(value) !== isExcluded;
    case "state":
      return isAny([row.state, stateText(row.state)]) !== isExcluded;
    case "agent":
      return isAny([row.agent]) !== isExcluded;
    case "host":
      return isAny([row.host ?? ""]) !== isExcluded;
    case "project":
      return (isAny([projectOf(row.cwd)]) || row.cwd.toLowerCase().includes(value)) !== isExcluded;
  }
}

export const matchesFilter = (row: SessionRow, terms: readonly FilterTerm[]): boolean => terms.every((it) => matchesTerm(row, it));

/** What a column is sorted by. */
const SORT_KEYS: Record<SortColumn, (row: SessionRow) => string | number> = {
  // RFC 3339 times are in order as text.
  attention: (row) => `${row.asks > 0 ? 1 : 0} ${row.updatedAt}`,
  state: (row) => stateText(row.state),
  title: (row) => titleOf(row).toLowerCase(),
  agent: (row) => row.agent.toLowerCase(),
  project: (row) => projectOf(row.cwd).toLowerCase(),
  host: (row) => row.host ?? "",
  updated: (row) => row.updatedAt,
  cost: (row) => row.cost?.amount ?? -1,
};

export function sortRows(rows: readonly SessionRow[], { column, isDescending }: SortOrder): SessionRow[] {
  const keyOf = SORT_KEYS[column];
  const keyed = rows.map((row) => ({ row, key: keyOf(row) }));
  const sign = isDescending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key !== b.key) return a.key < b.key ? -sign : sign;
    // The latest first, and then by id, so that equal rows do not change places.
    if (a.row.updatedAt !== b.row.updatedAt) return a.row.updatedAt < b.row.updatedAt ? 1 : -1;
    return a.row.sessionId < b.row.sessionId ? -1 : 1;
  });
  return keyed.map((it) => it.row);
}

export function parseOrder(text: string | undefined): SortOrder {
  const [, sign = "", column = ""] = /^(-?)(\w+)$/.exec(text ?? "") ?? [];
  return Object.hasOwn(SORT_KEYS, column) ? { column: column as SortColumn, isDescending: sign === "-" } : DEFAULT_ORDER;
}

/** As in the address: `-updated`; nothing for the usual order. */
export function formatOrder({ column, isDescending }: SortOrder): string | undefined {
  return column === DEFAULT_ORDER.column ? undefined : `${isDescending ? "-" : ""}${column}`;
}
