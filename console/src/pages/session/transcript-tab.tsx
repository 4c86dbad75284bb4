/**
 * The transcript of a session. Only the rows in sight are drawn.
 *
 * It stays at the end while the session goes on, unless the reader has scrolled up; what the reader sees does not move
 * when older rows are loaded above.
 */

import { createVirtualizer } from "@tanstack/solid-virtual";
import { createComputed, createEffect, createMemo, createSignal, For, Match, on, onCleanup, onMount, Show, Switch, type JSX } from "solid-js";
import { errorText } from "../../api/client";
import type { OpenSessionLog } from "../../state/open-session-log";
import type { LogPosition } from "../../state/session-log";
import { RowList, type Row } from "../../transcript/rows";
import { ItemView } from "../../transcript/view/item-view";
import { formatNumberOf } from "../../ui/format";
import "../../transcript/view/transcript.css";

interface TranscriptTabProps {
  log: OpenSessionLog;
  /** The event to show; changes when a link or a match is followed. */
  target: number | undefined;
}

/** Older or newer events are loaded when this much is left to scroll, in pixels. */
const LOAD_AHEAD = 1500;
/** A movement this soon after an input is one of the reader. */
const INPUT_MS = 1000;
/** Within this distance of the end, the reader is at the end. */
const END_DISTANCE = 60;

/** Heights of rows that were not drawn yet. Near enough is good enough: they are measured when they are drawn. */
function estimateHeight(row: Row): number {
  const chars = row.parts.reduce((sum, it) => sum + (it.type === "text" ? it.text.length : 2000), 0);
  switch (row.item.kind) {
    case "message":
    case "user":
      return 48 + Math.ceil(chars / 90) * 24;
    case "tool":
      return 120;
    default:
      return 44;
  }
}

/** Whether keys move in a text; an empty field leaves them to the page. */
function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return target.value !== "";
  return target instanceof Element && target.closest("select, dialog") !== null;
}

/** Records when the first rows were painted, for measurements. */
function markPaint(): void {
  requestAnimationFrame(() => setTimeout(() => performance.mark("transcript-painted")));
}

export function TranscriptTab(props: TranscriptTabProps): JSX.Element {
  const { items, state } = props.log;
  const rowList = new RowList();
  const rows = createMemo(() => rowList.update(items()));
  const hasRows = createMemo<boolean>((had) => had || rows().length > 0, false);
  return (
    <Show
      when={hasRows()}
      fallback={
        <div class="transcript">
          <Switch>
            <Match when={state().status === "loading"}>
              <p class="loading">Loading…</p>
            </Match>
            <Match when={state().status === "failed"}>
              <p class="transcript-error" role="alert">
                {errorText(state().error)}
              </p>
            </Match>
          </Switch>
        </div>
      }
    >
      <TranscriptRows {...props} rows={rows()} rowList={rowList} />
    </Show>
  );
}

/** The rows; there is at least one when they are first shown. */
function TranscriptRows(props: TranscriptTabProps & { rows: Row[]; rowList: RowList }): JSX.Element {
  let scroller!: HTMLDivElement;
  const { log, items, state } = props.log;
  const rows = (): Row[] => props.rows;
  /** The row of an event. */
  const rowOfEvent = (seq: number): number => {
    const item = log.items[log.indexOfEvent(seq)];
    return rows().findIndex((it) => it.item.key === item?.key);
  };
  const [isAtEnd, setAtEnd] = createSignal(props.target === undefined);
  /** The last row that the reader has seen at the end. */
  const [seen, setSeen] = createSignal(items().at(-1)?.seq ?? 0);
  /** The first rows that are drawn are those at the end or at the target. */
  const firstRow = props.target === undefined ? rows().length : rowOfEvent(props.target);
  const firstOffset = rows().slice(0, firstRow).reduce((sum, it) => sum + estimateHeight(it), 0);

  const virtualizer = createVirtualizer<HTMLDivElement, HTMLDivElement>({
    get count() {
      return rows().length;
    },
    getScrollElement: () => scroller,
    estimateSize: (index) => estimateHeight(rows()[index] as Row),
    getItemKey: (index) => rows()[index]?.key ?? index,
    overscan: 5,
    initialRect: { width: innerWidth, height: innerHeight },
    initialOffset: Math.max(0, props.target === undefined ? firstOffset - innerHeight : firstOffset),
    anchorTo: "end",
    get scrollEndThreshold() {
      return isAtEnd() ? END_DISTANCE : -1;
    },
  });

  // What grows above the place that is read moves it; this is corrected. Other rows grow at their end.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = (item, _delta, { scrollOffset, itemSizeCache, scrollDirection }) => {
    const offset = scrollOffset ?? 0;
    if (props.rowList.takeGrownAtStart(String(item.key)) || !itemSizeCache.has(item.key)) return item.start < offset;
    return item.end <= offset && scrollDirection !== "backward";
  };

  const scrollToEnd = (): void => virtualizer.scrollToEnd();
  const jumpTo = async (position: LogPosition): Promise<void> => {
    if (position === "end" && state().isAtEnd) return scrollToEnd();
    if (typeof position === "object" && log.hasEvent(position.seq)) return showEvent(position.seq);
    setAtEnd(position === "end");
    await log.open(position);
    requestAnimationFrame(() => {
      if (position === "end") scrollToEnd();
      else if (position === "beginning") virtualizer.scrollToOffset(0);
      else showEvent(position.seq);
    });
  };
  const showEvent = (seq: number): void => {
    const index = rowOfEvent(seq);
    if (index < 0) return;
    setAtEnd(false);
    virtualizer.scrollToIndex(index, { align: "start" });
  };

  let scrollTop = 0;
  let movedAt = -Infinity;
  const distanceFromEnd = (): number => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  /** The reader leaves the end by moving up. Corrections of the virtualizer move up, too, but without an input. */
  const onScroll = (): void => {
    const isMovedUp = scroller.scrollTop < scrollTop && performance.now() - movedAt < INPUT_MS;
    scrollTop = scroller.scrollTop;
    if (state().isAtEnd && distanceFromEnd() < END_DISTANCE) setAtEnd(true);
    else if (isMovedUp || !state().isAtEnd) setAtEnd(false);
    loadNearby();
  };
  const onInput = (): void => void (movedAt = performance.now());
  const loadNearby = (): void => {
    if (scroller.scrollTop < LOAD_AHEAD) void log.loadOlder();
    if (!state().isAtEnd && distanceFromEnd() < LOAD_AHEAD) void log.loadNewer();
  };

  createEffect(() => {
    log.keepsEnd = isAtEnd();
  });
  createEffect(on([() => virtualizer.getTotalSize(), rows], () => isAtEnd() && scrollToEnd()));
  onMount(() => {
    if (props.target !== undefined) showEvent(props.target);
    markPaint();
  });
  createComputed(() => isAtEnd() && setSeen(items().at(-1)?.seq ?? 0));
  createEffect(on(() => props.target, (seq) => seq !== undefined && void jumpTo({ seq }), { defer: true }));
  // A short window does not scroll, so it has to be filled.
  createEffect(on(rows, () => rows().length > 0 && requestAnimationFrame(loadNearby)));

  const onKeyDown = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || event.altKey || event.shiftKey || event.defaultPrevented) return;
    if (event.key === "Home") void jumpTo("beginning");
    else if (event.key === "End") void jumpTo("end");
    else return;
    event.preventDefault();
  };
  onMount(() => {
    const observer = new ResizeObserver(() => isAtEnd() && scrollToEnd());
    observer.observe(scroller);
    addEventListener("keydown", onKeyDown);
    onCleanup(() => {
      observer.disconnect();
      removeEventListener("keydown", onKeyDown);
    });
  });

  const newItems = (): number => items().filter((it) => it.seq > seen()).length;
  const visible = createMemo(() => virtualizer.getVirtualItems().map((it) => String(it.key)));
  const indexOf = createMemo(() => new Map(virtualizer.getVirtualItems().map((it) => [String(it.key), it.index])));
  return (
    <div class="transcript">
      <div
        class="transcript-scroll"
        ref={scroller}
        onScroll={onScroll}
        onWheel={onInput}
        onTouchMove={onInput}
        onPointerDown={onInput}
        onKeyDown={onInput}
        tabindex="0"
        role="log"
        aria-live="off"
        aria-label="Transcript"
      >
        <div class="transcript-rows" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          <Show when={state().status === "ready" && !state().hasBefore}>
            <span data-transcript-start />
          </Show>
          <div class="transcript-visible" style={{ transform: `translateY(${virtualizer.getVirtualItems()[0]?.start ?? 0}px)` }}>
            <For each={visible()}>
              {(key) => {
                const index = (): number => indexOf().get(key) ?? -1;
                // The row may be gone a moment before its element.
                const row = createMemo<Row | undefined>((before) => rows()[index()] ?? before);
                return (
                  <div class="transcript-row" data-index={index()} ref={(it) => queueMicrotask(() => virtualizer.measureElement(it))}>
                    <Show when={row()}>{(it) => <ItemView row={it()} />}</Show>
                  </div>
                );
              }}
            </For>
          </div>
        </div>
      </div>
      <Show when={!isAtEnd() && items().length > 0}>
        <button type="button" class="transcript-latest" onClick={() => void jumpTo("end")}>
          ↓ Latest
          <Show when={state().isAtEnd && newItems() > 0}>
            <span class="badge">{formatNumberOf(newItems(), "new item")}</span>
          </Show>
        </button>
      </Show>
    </div>
  );
}
