/** The list of all sessions: filtered, sorted, and used with the keyboard alone. Only the rows in sight are drawn. */

import { useBeforeLeave, useSearchParams } from "@solidjs/router";
import type { SessionPage } from "jackfield-client";
import { createEffect, createMemo, createResource, createSignal, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { api } from "../../api/client";
import { takeEarlyResponse } from "../../api/early-response";
import { usePageTitle } from "../../app/page-title";
import { allSessions, isListComplete } from "../../state/daemon";
import type { SessionRow } from "../../state/session-row";
import { formatNumberOf } from "../../ui/format";
import { NewSessionButton } from "../../ui/new-session-button";
import { isPlainKey } from "../../ui/plain-key";
import { WaitingBanner } from "../../ui/waiting-banner";
import { formatOrder, matchesFilter, parseFilter, parseOrder, prepareFilter, sortRows, type SortOrder } from "./session-query";
import { SessionTable } from "./session-table";
import "./sessions.css";

/** The first paint does not wait for all sessions. */
const FIRST_ROWS = 100;
/** The filter is prepared when the list has not changed for this time. */
const PREPARE_MS = 500;
/** The address follows the filter when nothing was typed for this time. */
const ADDRESS_MS = 300;

export default function SessionsPage(): JSX.Element {
  usePageTitle(() => "Sessions");
  const [query, setQuery] = useSearchParams<{ q?: string; sort?: string }>();
  const [filter, setFilter] = createSignal(query.q ?? "");
  const order = createMemo(() => parseOrder(query.sort));
  const all = createAllRows();
  const sorted = createMemo(() => sortRows(all(), order()));
  const terms = createMemo(() => parseFilter(filter()));
  const shown = createMemo(() => (terms().length === 0 ? sorted() : sorted().filter((it) => matchesFilter(it, terms()))));
  let input!: HTMLInputElement;
  let addressTimer: ReturnType<typeof setTimeout> | undefined;

  createEffect(
    on(filter, (text) => {
      addressTimer = setTimeout(() => setQuery({ q: text === "" ? undefined : text }, { replace: true }), ADDRESS_MS);
      onCleanup(() => clearTimeout(addressTimer));
    }, { defer: true }),
  );
  // The page is still there while the next one is loaded, and the address is already that of the next one.
  useBeforeLeave(() => clearTimeout(addressTimer));
  createEffect(
    on(all, (rows) => {
      const timer = setTimeout(() => prepareFilter(rows), PREPARE_MS);
      onCleanup(() => clearTimeout(timer));
    }),
  );
  const onFilter = (text: string): void => {
    const start = performance.now();
    setFilter(text);
    performance.measure("sessions-filtered", { start, end: performance.now() });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "/" || !isPlainKey(event)) return;
    event.preventDefault();
    input.focus();
    input.select();
  };
  onMount(() => {
    document.addEventListener("keydown", onKeyDown);
    onCleanup(() => document.removeEventListener("keydown", onKeyDown));
  });

  const count = (): string => {
    const total = isListComplete() ? formatNumberOf(all().length, "session") : "Loading…";
    return terms().length === 0 || !isListComplete() ? total : `${shown().length.toLocaleString()} of ${total}`;
  };
  return (
    <div class="sessions" data-session-count={isListComplete() ? all().length : undefined}>
      <WaitingBanner />
      <header class="sessions-header">
        <h1>Sessions</h1>
        <input
          ref={input}
          type="search"
          class="sessions-filter"
          aria-label="Filter sessions"
          aria-keyshortcuts="/"
          placeholder="Filter: text, state:working, agent:…, project:…"
          value={filter()}
          onInput={(event) => onFilter(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && (onFilter(""), input.blur())}
        />
        <output class="sessions-count" aria-live="polite">
          {count()}
        </output>
        <NewSessionButton />
      </header>
      <SessionTable rows={shown()} order={order()} onOrder={(it: SortOrder) => setQuery({ sort: formatOrder(it) }, { replace: true })} />
      <Show when={isListComplete() && shown().length === 0}>
        <p class="sessions-empty">
          {all().length === 0 ? "There are no sessions yet. Start one here, or run `jackfield run` in a terminal." : "No session matches the filter."}
        </p>
      </Show>
    </div>
  );
}

/** All rows as plain objects; the latest ones until the change stream has sent all. */
function createAllRows(): () => SessionRow[] {
  const [first] = createResource(async () => {
    if (isListComplete()) return [];
    const early = await takeEarlyResponse<SessionPage>("/api/sessions");
    return (early ?? (await api.sessions.list({ limit: FIRST_ROWS }))).sessions;
  });
  return createMemo(() => {
    const known: SessionRow[] = allSessions();
    const isEarly = known.length === 0 && !isListComplete() && first.state === "ready";
    return isEarly ? ((first.latest ?? []) as SessionRow[]) : known;
  });
}
