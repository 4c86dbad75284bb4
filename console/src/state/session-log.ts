/**
 * The log of a session as a page shows it: a window of its events, folded into items.
 *
 * The window opens at the end, at the beginning or around an event, grows in both directions, and drops events on the
 * far side when it is too large. At the end it follows the session. An event is appended only if it is the next one;
 * when one is missing, the events after the window are read. So nothing is doubled, lost or reordered.
 */

import type { LogPage } from "jackfield-client";
import type { LogQuery } from "../api/log";
import type { LogEvent } from "../api/stream/messages";
import { foldWindow, Transcript } from "../transcript/fold";
import type { Item } from "../transcript/item";
import type { LogFollower } from "./daemon";

/** Where the events come from. */
export interface LogSource {
  read(query: LogQuery): Promise<LogPage>;
  follow(after: number, follower: LogFollower): () => void;
  /** Whether reading again later can help. */
  canRetry(error: unknown): boolean;
  /** Whether the session does not exist. */
  isGone(error: unknown): boolean;
}

export type LogPosition = "beginning" | "end" | { seq: number };

export interface LogState {
  status: "loading" | "ready" | "gone" | "failed";
  /** There are events before the window. */
  hasBefore: boolean;
  /** The window reaches the end of the log, and follows it. */
  isAtEnd: boolean;
  /** The last known event of the session. */
  last: number;
  error: unknown;
}

/** As in `src/early.ts`, which usually reads them. */
const FIRST_EVENTS = 250;
const PAGE_EVENTS = 500;
const FILL_EVENTS = 1000;
const CONTEXT_EVENTS = 150;
/** Larger windows are trimmed, down to the second number. */
const WINDOW_EVENTS_MAX = 5000;
const WINDOW_EVENTS_KEPT = 3500;
const WINDOW_CHARS_MAX = 24_000_000;
const WINDOW_CHARS_KEPT = 16_000_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 5000;

export class SessionLog {
  readonly #source: LogSource;
  readonly #onChange: () => void;
  #events: LogEvent[] = [];
  #transcript = new Transcript();
  #state: LogState = { status: "loading", hasBefore: false, isAtEnd: false, last: 0, error: undefined };
  /** The log has no events between the window and this one: damaged events are left out. */
  #emptyTo = 0;
  /** Events that arrived before the ones that precede them. */
  #early: LogEvent[] = [];
  /** The reader is at the end: what is above may be dropped. */
  #keepsEnd = true;
  /** Changes with each jump; results of reads before it are dropped. */
  #generation = 0;
  #readsOlder = false;
  #readsNewer = false;
  #failures = 0;
  readonly #retryTimers: Record<"older" | "newer", ReturnType<typeof setTimeout> | undefined> = {
    older: undefined,
    newer: undefined,
  };
  /** The approximate size of the window, in characters. */
  #chars = 0;
  /** A window that could not be trimmed, because it is one long message, is tried again with this many events. */
  #trimFrom = 0;
  #stopFollowing: (() => void) | undefined;

  constructor(source: LogSource, onChange: () => void) {
    this.#source = source;
    this.#onChange = onChange;
  }

  get items(): readonly Item[] {
    return this.#transcript.items;
  }

  get state(): LogState {
    return this.#state;
  }

  /** The events of the window. */
  get events(): readonly LogEvent[] {
    return this.#events;
  }

  indexOfEvent(seq: number): number {
    return this.#transcript.indexOfEvent(seq);
  }

  hasEvent(seq: number): boolean {
    const [first, last] = [this.#events[0], this.#events.at(-1)];
    return first !== undefined && last !== undefined && first.seq <= seq && seq <= last.seq;
  }

  /** Whether the reader is at the end; otherwise new events do not push out what is being read. */
  set keepsEnd(value: boolean) {
    this.#keepsEnd = value;
  }

  /** Replaces the window. */
  async open(position: LogPosition): Promise<void> {
    this.#generation += 1;
    const generation = this.#generation;
    this.#clearRetries();
    try {
      const page = await this.#readAround(position);
      if (generation !== this.#generation) return;
      this.#readsOlder = this.#readsNewer = false;
      this.#early = [];
      this.#emptyTo = 0;
      this.#replaceEvents(page.events);
      this.#onSuccess({ status: "ready", hasBefore: page.hasBefore, isAtEnd: false });
      this.#reachEnd(page);
      this.#stopFollowing ??= this.#source.follow(this.#state.last, {
        onEvents: (events) => this.#onEvents(events),
        onPosition: (last) => this.#onPosition(last),
        onGone: () => this.#set({ status: "gone" }),
      });
    } catch (error) {
      if (generation === this.#generation) this.#onError(error, "newer", () => void this.open(position));
    }
  }

  /** Loads events before the window. */
  async loadOlder(): Promise<void> {
    const first = this.#events[0];
    if (this.#readsOlder || !first || !this.#state.hasBefore || this.#state.status !== "ready") return;
    this.#readsOlder = true;
    const generation = this.#generation;
    try {
      const page = await this.#source.read({ before: first.seq, limit: PAGE_EVENTS });
      if (generation !== this.#generation || this.#events[0] !== first) return;
      this.#replaceEvents([...page.events, ...this.#events]);
      this.#onSuccess({ hasBefore: page.hasBefore });
      if (this.#isTooLarge()) this.#trimEnd();
    } catch (error) {
      if (generation === this.#generation) this.#onError(error, "older", () => void this.loadOlder());
    } finally {
      if (generation === this.#generation) this.#readsOlder = false;
    }
  }

  /** Loads events after the window, up to its end if it follows the session. */
  async loadNewer(): Promise<void> {
    if (this.#readsNewer || this.#state.status !== "ready") return;
    this.#readsNewer = true;
    const generation = this.#generation;
    try {
      do {
        const after = this.#lastSeq();
        if (after >= this.#state.last) break;
        const page = await this.#source.read({ after, limit: this.#state.isAtEnd ? FILL_EVENTS : PAGE_EVENTS });
        // The end of the window may have been dropped meanwhile.
        if (generation !== this.#generation || this.#lastSeq() < after) return;
        this.#onSuccess({});
        this.#append(page.events);
        this.#reachEnd(page);
        // The log is written before its events are sent; a page without progress is read again later.
        if (this.#lastSeq() === after) throw new Error("the events are not in the log yet");
      } while (this.#state.isAtEnd && this.#lastSeq() < this.#state.last);
    } catch (error) {
      if (generation === this.#generation) this.#onError(error, "newer", () => void this.loadNewer());
    } finally {
      if (generation === this.#generation) this.#readsNewer = false;
    }
  }

  close(): void {
    this.#generation += 1;
    this.#clearRetries();
    this.#stopFollowing?.();
  }

  #clearRetries(): void {
    clearTimeout(this.#retryTimers.older);
    clearTimeout(this.#retryTimers.newer);
  }

  async #readAround(position: LogPosition): Promise<LogPage> {
    if (position === "end") return this.#source.read({ limit: FIRST_EVENTS });
    if (position === "beginning") return this.#source.read({ after: 0, limit: PAGE_EVENTS });
    const [before, after] = await Promise.all([
      this.#source.read({ before: position.seq + 1, limit: CONTEXT_EVENTS }),
      this.#source.read({ after: position.seq, limit: CONTEXT_EVENTS }),
    ]);
    const events = [...before.events, ...after.events];
    return { ...after, events, last: Math.max(before.last, after.last), hasBefore: before.hasBefore };
  }

  /** The last event of the window, or a later one that cannot be read. */
  #lastSeq(): number {
    return Math.max(this.#events.at(-1)?.seq ?? 0, this.#emptyTo);
  }

  /** The window follows the session if the page was the last one. */
  #reachEnd(page: LogPage): void {
    if (!page.hasAfter) this.#emptyTo = page.last;
    const last = Math.max(this.#state.last, page.last, this.#lastSeq());
    const isAtEnd = this.#state.isAtEnd || !page.hasAfter;
    this.#set({ last, isAtEnd });
    if (isAtEnd && this.#lastSeq() < last) void this.loadNewer();
  }

  #onEvents(events: LogEvent[]): void {
    const last = Math.max(this.#state.last, events.at(-1)?.seq ?? 0);
    if (last > this.#state.last) this.#set({ last });
    if (!this.#state.isAtEnd) return;
    const newest = this.#early.at(-1)?.seq ?? 0;
    this.#early.push(...events.filter((it) => it.seq > newest));
    this.#appendEarly();
    if (this.#lastSeq() < last) void this.loadNewer();
    else if (this.#isTooLarge()) this.#trim();
  }

  #onPosition(last: number): void {
    if (last <= this.#state.last) return;
    this.#set({ last });
    if (this.#state.isAtEnd) void this.loadNewer();
  }

  /** Appends what is new of a page, and then the early events that follow it. */
  #append(events: readonly LogEvent[]): void {
    for (const it of events) if (it.seq > this.#lastSeq()) this.#appendOne(it);
    this.#appendEarly();
    if (this.#isTooLarge()) this.#trim();
    this.#onChange();
  }

  #appendEarly(): void {
    let used = 0;
    for (const it of this.#early) {
      if (it.seq > this.#lastSeq() + 1) break;
      if (it.seq === this.#lastSeq() + 1) this.#appendOne(it);
      used += 1;
    }
    this.#early.splice(0, used);
    if (used > 0) this.#onChange();
  }

  #appendOne(event: LogEvent): void {
    this.#events.push(event);
    this.#chars += charsOf(event);
    this.#transcript.append(event);
  }

  #replaceEvents(events: LogEvent[]): void {
    this.#events = events;
    this.#trimFrom = 0;
    this.#chars = events.reduce((sum, it) => sum + charsOf(it), 0);
    this.#transcript = foldWindow(events, this.items);
  }

  #isTooLarge(): boolean {
    if (this.#events.length < this.#trimFrom) return false;
    return this.#events.length > WINDOW_EVENTS_MAX || this.#chars > WINDOW_CHARS_MAX;
  }

  #trim(): void {
    if (this.#keepsEnd || !this.#state.isAtEnd) this.#trimBeginning();
    else this.#trimEnd();
    this.#trimFrom = this.#events.length + WINDOW_EVENTS_MAX - WINDOW_EVENTS_KEPT;
  }

  /** Drops the oldest events, up to the beginning of an item. */
  #trimBeginning(): void {
    const limit = (this.#events[this.#events.length - countKept(this.#events.toReversed())] as LogEvent).seq;
    const first = this.items.findLast((it) => it.seq <= limit);
    if (!first || first === this.items[0]) return;
    this.#replaceEvents(this.#events.filter((it) => it.seq >= first.seq));
    this.#set({ hasBefore: true });
  }

  /** Drops the newest events, from the beginning of an item on. The window does not follow the session any more. */
  #trimEnd(): void {
    const limit = this.#events[countKept(this.#events)]?.seq ?? Infinity;
    const next = this.items.find((it) => it.seq >= limit);
    if (!next) return;
    this.#early = [];
    this.#emptyTo = 0;
    this.#replaceEvents(this.#events.filter((it) => it.seq < next.seq));
    this.#set({ isAtEnd: false });
  }

  #onSuccess(change: Partial<LogState>): void {
    this.#failures = 0;
    this.#set({ ...change, error: undefined });
  }

  #onError(error: unknown, direction: "older" | "newer", retry: () => void): void {
    if (this.#source.isGone(error)) return this.#set({ status: "gone" });
    if (!this.#source.canRetry(error)) return this.#set({ status: this.#events.length > 0 ? "ready" : "failed", error });
    this.#failures += 1;
    clearTimeout(this.#retryTimers[direction]);
    this.#retryTimers[direction] = setTimeout(retry, Math.min(RETRY_MIN_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS));
    this.#set({ error });
  }

  #set(change: Partial<LogState>): void {
    this.#state = { ...this.#state, ...change };
    this.#onChange();
  }
}

/** How many of these events, from the first on, a trimmed window keeps. */
function countKept(events: readonly LogEvent[]): number {
  let chars = 0;
  const end = events.slice(0, WINDOW_EVENTS_KEPT).findIndex((it) => (chars += charsOf(it)) > WINDOW_CHARS_KEPT);
  return Math.max(1, end < 0 ? Math.min(WINDOW_EVENTS_KEPT, events.length) : end);
}

const knownChars = new WeakMap<LogEvent, number>();

/** The approximate size of an event: the length of its texts, and some for each member. */
function charsOf(event: LogEvent): number {
  const count = (value: unknown): number => {
    if (typeof value === "string") return value.length;
    if (typeof value !== "object" || value === null) return 8;
    let sum = 16;
    for (const it of Object.values(value)) sum += count(it);
    return sum;
  };
  const known = knownChars.get(event) ?? count(event);
  knownChars.set(event, known);
  return known;
}
