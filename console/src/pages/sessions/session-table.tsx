/** The rows of the list of sessions: a table on a wide screen, cards on a phone. */

import { createVirtualizer } from "@tanstack/solid-virtual";
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { sessionPath } from "../../app/navigate";
import { me } from "../../state/me";
import type { SessionRow } from "../../state/session-row";
import { formatCost } from "../../ui/format";
import { isPlainKey } from "../../ui/plain-key";
import { SessionMenu } from "../../ui/session-menu";
import { SessionState } from "../../ui/session-state";
import { TimeAgo } from "../../ui/time-ago";
import { shortLine } from "../../ui/visible-text";
import { projectOf, titleOf, type SortColumn, type SortOrder } from "./session-query";

interface SessionTableProps {
  rows: readonly SessionRow[];
  order: SortOrder;
  onOrder(order: SortOrder): void;
}

/** In the order of the cells of a row. The host is shown in a fleet. */
const COLUMNS: { column: SortColumn; label: string }[] = [
  { column: "state", label: "State" },
  { column: "title", label: "Session" },
  { column: "agent", label: "Agent" },
  { column: "project", label: "Project" },
  { column: "host", label: "Host" },
  { column: "updated", label: "Last activity" },
  { column: "cost", label: "Cost" },
];

const ROW_HEIGHT = 44;
const CARD_HEIGHT = 68;
const narrow = matchMedia("(max-width: 640px)");

export function SessionTable(props: SessionTableProps): JSX.Element {
  let scroller!: HTMLDivElement;
  const [isNarrow, setNarrow] = createSignal(narrow.matches);
  const hasHosts = (): boolean => me()?.fleet ?? false;
  const height = (): number => (isNarrow() ? CARD_HEIGHT : ROW_HEIGHT);
  const virtualizer = createVirtualizer<HTMLDivElement, HTMLDivElement>({
    get count() {
      return props.rows.length;
    },
    getScrollElement: () => scroller,
    estimateSize: () => height(),
    getItemKey: (index) => props.rows[index]?.sessionId ?? index,
    overscan: 4,
    // The first rows are drawn at once, before the page was measured.
    initialRect: { width: 1000, height: 900 },
  });
  createEffect(on(height, () => virtualizer.measure(), { defer: true }));
  const hasRows = createMemo<boolean>((had) => had || props.rows.length > 0, false);
  createEffect(() => hasRows() && markPaint());

  /** The row that gets the focus when it is drawn: keys may be pressed faster than that. */
  let next: number | undefined;
  const focusRow = (index: number): void => {
    if (index < 0 || index >= props.rows.length) return;
    next = index;
    virtualizer.scrollToIndex(index);
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        if (next !== index) return;
        next = undefined;
        scroller.querySelector<HTMLElement>(`[data-index="${index}"] a`)?.focus();
      }),
    );
  };
  const focusedIndex = (): number => {
    if (next !== undefined) return next;
    const row = document.activeElement?.closest<HTMLElement>("[data-session-row]");
    return row && scroller.contains(row) ? Number(row.dataset["index"]) : -1;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isInFilter = event.target instanceof Element && event.target.matches(".sessions-filter");
    if (isInFilter && (event.key === "Enter" || event.key === "ArrowDown") && !event.isComposing) {
      event.preventDefault();
      return focusRow(0);
    }
    if (!isPlainKey(event) || (event.target as Element).closest(".session-menu-list")) return;
    const isInList = focusedIndex() >= 0;
    if (event.key === "j" || (event.key === "ArrowDown" && isInList)) focusRow(focusedIndex() + 1);
    else if (event.key === "k" || (event.key === "ArrowUp" && isInList)) focusRow(Math.max(0, focusedIndex() - 1));
    else if (event.key === "Home" && isInList) focusRow(0);
    else if (event.key === "End" && isInList) focusRow(props.rows.length - 1);
    else return;
    event.preventDefault();
  };
  const onNarrow = (): void => void setNarrow(narrow.matches);
  onMount(() => {
    narrow.addEventListener("change", onNarrow);
    document.addEventListener("keydown", onKeyDown);
    onCleanup(() => {
      narrow.removeEventListener("change", onNarrow);
      document.removeEventListener("keydown", onKeyDown);
    });
  });

  const places = createMemo(() => new Map(virtualizer.getVirtualItems().map((it) => [String(it.key), it])));
  const visible = createMemo(() => [...places().keys()]);
  return (
    <div class="session-table" classList={{ "has-hosts": hasHosts() }} role="table" aria-label="Sessions" aria-rowcount={props.rows.length + 1}>
      <div class="session-head" role="row" aria-rowindex={1}>
        <For each={COLUMNS.filter((it) => it.column !== "host" || hasHosts())}>{(it) => <SortHeader {...it} order={props.order} onOrder={props.onOrder} />}</For>
        <span role="columnheader">
          <span class="visually-hidden">Actions</span>
        </span>
      </div>
      <div class="session-scroll" ref={scroller} role="rowgroup">
        <div class="session-rows" role="none" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          <For each={visible()}>
            {(id) => {
              const index = (): number => places().get(id)?.index ?? 0;
              const row = createMemo<SessionRow | undefined>((before) => props.rows[index()] ?? before);
              return (
                <Show when={row()}>
                  {(it) => <TableRow row={it()} index={index()} start={places().get(id)?.start ?? 0} height={height()} hasHost={hasHosts()} />}
                </Show>
              );
            }}
          </For>
        </div>
      </div>
    </div>
  );
}

/** Records when the first rows were painted, for measurements. */
function markPaint(): void {
  requestAnimationFrame(() => setTimeout(() => performance.mark("sessions-painted")));
}

function SortHeader(props: { column: SortColumn; label: string; order: SortOrder; onOrder(order: SortOrder): void }): JSX.Element {
  const isSorted = (): boolean => props.order.column === props.column;
  const direction = (): "ascending" | "descending" | "none" => {
    if (!isSorted()) return "none";
    return props.order.isDescending ? "descending" : "ascending";
  };
  /** Up, down, and then back to the usual order. */
  const sort = (): void => {
    const first = props.column === "updated" || props.column === "cost";
    if (!isSorted()) props.onOrder({ column: props.column, isDescending: first });
    else if (props.order.isDescending === first) props.onOrder({ column: props.column, isDescending: !first });
    else props.onOrder({ column: "attention", isDescending: true });
  };
  return (
    <span role="columnheader" class={`session-cell-${props.column}`} aria-sort={direction()}>
      <button type="button" class="quiet" onClick={sort}>
        {props.label}
        <span aria-hidden="true">{isSorted() ? (props.order.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </span>
  );
}

function TableRow(props: { row: SessionRow; index: number; start: number; height: number; hasHost: boolean }): JSX.Element {
  return (
    <div
      class="session-row"
      classList={{ "session-row-asks": props.row.asks > 0 }}
      role="row"
      aria-rowindex={props.index + 2}
      data-session-row
      data-session-id={props.row.sessionId}
      data-index={props.index}
      style={{ transform: `translateY(${props.start}px)`, height: `${props.height}px` }}
    >
      <span role="cell" class="session-cell-state">
        <SessionState row={props.row} />
      </span>
      <span role="cell" class="session-cell-title">
        <a href={`/console${sessionPath(props.row.sessionId)}`} title={shortLine(titleOf(props.row), 500)}>
          {shortLine(titleOf(props.row), 200)}
        </a>
      </span>
      <span role="cell" class="session-cell-agent">
        {shortLine(props.row.agent, 60)}
      </span>
      <span role="cell" class="session-cell-project" title={shortLine(props.row.cwd, 1000)}>
        {shortLine(projectOf(props.row.cwd), 80)}
      </span>
      <Show when={props.hasHost}>
        <span role="cell" class="session-cell-host">
          {shortLine(props.row.host ?? "", 60)}
        </span>
      </Show>
      <span role="cell" class="session-cell-updated">
        <TimeAgo at={props.row.updatedAt} />
      </span>
      <span role="cell" class="session-cell-cost">
        {props.row.cost ? formatCost(props.row.cost) : ""}
      </span>
      <span role="cell" class="session-cell-menu">
        <SessionMenu sessionId={props.row.sessionId} />
      </span>
    </div>
  );
}
