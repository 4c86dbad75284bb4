/**
 * The change stream: one connection to `/api/events` for all pages of a browser.
 *
 * It keeps all rows, the position in the list of changes, and the position in the log of each followed session.
 * When the connection is lost it connects again with these positions. A page that finds a gap in a log, because
 * another page follows the same session further ahead, reads the missing events with `GET …/log`.
 */

import { readServerSentEvents, type Ask, type Session } from "jackfield-client";
import type { AnsweredAsk, ConnectionState, LogEvent, PageMessage, StreamMessage } from "./messages";

/** A page that is connected to the stream. */
export interface StreamPage {
  send(message: StreamMessage): void;
}

/** The daemon sends a comment every 15 seconds. A page that becomes visible reconnects after this silence. */
const KEEP_ALIVE_MS = 17_000;
/** A connection that is silent for longer than this is dead. */
const SILENCE_MS = 40_000;
const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5_000;
/** Changes are collected for this time before they are sent to the pages. */
const BATCH_MS = 16;

const askKey = (it: { sessionId: string; ask: number }): string => `${it.sessionId}/${it.ask}`;

export class ChangeStream {
  readonly #pages = new Map<StreamPage, Set<string>>();
  readonly #sessions = new Map<string, Session>();
  readonly #asks = new Map<string, Ask>();
  /** The last known event of each followed session. */
  readonly #positions = new Map<string, number>();
  #state: ConnectionState = { status: "connecting" };
  #isComplete = false;
  #after = "";
  #failures = 0;
  /** When the daemon sent something last, in Unix milliseconds. */
  #heardAt = 0;
  #connection: AbortController | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #batch = new Batch();
  #batchTimer: ReturnType<typeof setTimeout> | undefined;

  /** Adds a page: it gets all rows at once. */
  addPage(page: StreamPage): void {
    this.#pages.set(page, new Set());
    page.send({ type: "connection", state: this.#state });
    page.send(this.#snapshot());
    if (this.#pages.size === 1) this.#connect();
  }

  handlePageMessage(page: StreamPage, message: PageMessage): void {
    const followed = this.#pages.get(page);
    if (!followed) return;
    switch (message.type) {
      case "follow": {
        followed.add(message.sessionId);
        const last = this.#positions.get(message.sessionId);
        if (last === undefined) {
          this.#positions.set(message.sessionId, message.after);
          this.#connect();
        } else if (message.after < last) {
          // The page may only wait for events that it has not got yet.
          this.#flush();
          page.send({ type: "position", sessionId: message.sessionId, last });
        }
        return;
      }
      case "unfollow":
        followed.delete(message.sessionId);
        this.#forgetUnfollowed();
        return;
      case "connect":
        if (this.#state.status !== "live" || this.#heardAt + KEEP_ALIVE_MS < Date.now()) this.#connect();
        return;
      case "close":
        this.#pages.delete(page);
        this.#forgetUnfollowed();
        if (this.#pages.size === 0) this.#disconnect();
    }
  }

  /** Sessions that no page follows stay in the open connection until the next one; their events are dropped. */
  #forgetUnfollowed(): void {
    const wanted = new Set([...this.#pages.values()].flatMap((it) => [...it]));
    for (const id of this.#positions.keys()) if (!wanted.has(id)) this.#positions.delete(id);
  }

  #snapshot(): StreamMessage {
    const [sessions, asks] = [[...this.#sessions.values()], [...this.#asks.values()]];
    return { type: "snapshot", sessions, asks, complete: this.#isComplete };
  }

  #disconnect(): void {
    clearTimeout(this.#retryTimer);
    this.#connection?.abort();
    this.#connection = undefined;
  }

  #connect(): void {
    this.#disconnect();
    const connection = new AbortController();
    this.#connection = connection;
    void this.#run(connection);
  }

  async #run(connection: AbortController): Promise<void> {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const expectBytes = (): void => {
      clearTimeout(silence);
      this.#heardAt = Date.now();
      const why = new Error("the daemon has sent nothing for too long");
      silence = setTimeout(() => connection.abort(why), SILENCE_MS);
    };
    try {
      expectBytes();
      const response = await fetch(this.#url(), { headers: { "x-jackfield-console": "1" }, signal: connection.signal });
      if (response.status === 401) return this.#setState({ status: "signed-out" });
      if (!response.ok || !response.body) throw new Error(`the daemon answered ${response.status}`);
      this.#failures = 0;
      this.#setState({ status: "live" });
      for await (const message of readServerSentEvents(response.body, this.#after)) {
        expectBytes();
        if (message) this.#onEvent(message.event, message.id, message.data);
      }
      throw new Error("the daemon closed the connection");
    } catch (error) {
      if (this.#connection === connection) this.#retryLater(error);
    } finally {
      clearTimeout(silence);
    }
  }

  #url(): string {
    const query = new URLSearchParams();
    if (this.#after) query.set("after", this.#after);
    for (const [id, seq] of this.#positions) query.append("follow", `${id}:${seq}`);
    return `/api/events?${query}`;
  }

  #retryLater(error: unknown): void {
    this.#failures += 1;
    const delay = Math.min(RETRY_MIN_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS) * (0.75 + Math.random() / 2);
    // `fetch` throws a TypeError, whose text depends on the browser, if there is no connection.
    const why = error instanceof TypeError ? "it cannot be reached" : error instanceof Error ? error.message : String(error);
    const since = this.#state.status === "lost" ? this.#state.since : Date.now();
    this.#setState({ status: "lost", why, since, retryAt: Date.now() + delay });
    this.#retryTimer = setTimeout(() => this.#connect(), delay);
  }

  #setState(state: ConnectionState): void {
    this.#state = state;
    this.#sendAll({ type: "connection", state });
  }

  #onEvent(name: string, id: string, text: string): void {
    const data: unknown = JSON.parse(text);
    switch (name) {
      case "reset":
        this.#sessions.clear();
        this.#asks.clear();
        this.#isComplete = false;
        this.#batch = new Batch();
        break;
      case "session": {
        const row = data as Session;
        this.#sessions.set(row.sessionId, row);
        if (this.#isComplete) this.#batch.addSession(row);
        break;
      }
      case "removed": {
        const { sessionId } = data as { sessionId: string };
        this.#sessions.delete(sessionId);
        this.#batch.removeSession(sessionId);
        break;
      }
      case "ask": {
        const row = data as Ask;
        this.#asks.set(askKey(row), row);
        if (this.#isComplete) this.#batch.asks.push(row);
        break;
      }
      case "answered": {
        const answer = data as AnsweredAsk;
        this.#asks.delete(askKey(answer));
        this.#batch.answered.push(answer);
        break;
      }
      case "ready":
        if (!this.#isComplete) {
          this.#isComplete = true;
          this.#sendAll(this.#snapshot());
        }
        break;
      case "log": {
        const { sessionId, event } = data as { sessionId: string; event: LogEvent };
        if (!this.#positions.has(sessionId)) return;
        this.#positions.set(sessionId, event.seq);
        this.#batch.addEvent(sessionId, event);
        break;
      }
      case "gone": {
        const { sessionId } = data as { sessionId: string };
        this.#positions.delete(sessionId);
        this.#batch.gone.push(sessionId);
        break;
      }
    }
    if (name !== "log" && name !== "gone") this.#after = id;
    this.#batchTimer ??= setTimeout(() => this.#flush(), BATCH_MS);
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = new Batch();
    clearTimeout(this.#batchTimer);
    this.#batchTimer = undefined;
    const { sessions, removed, asks, answered, logs, gone } = batch;
    if (sessions.size + removed.size) {
      this.#sendAll({ type: "sessions", sessions: [...sessions.values()], removed: [...removed] });
    }
    if (asks.length + answered.length) this.#sendAll({ type: "asks", asks, answered });
    for (const [page, followed] of this.#pages) {
      for (const [sessionId, events] of logs) if (followed.has(sessionId)) page.send({ type: "log", sessionId, events });
      for (const sessionId of gone) if (followed.has(sessionId)) page.send({ type: "gone", sessionId });
    }
  }

  #sendAll(message: StreamMessage): void {
    for (const page of this.#pages.keys()) page.send(message);
  }
}

/** Changes that wait to be sent to the pages. */
class Batch {
  readonly sessions = new Map<string, Session>();
  readonly removed = new Set<string>();
  readonly asks: Ask[] = [];
  readonly answered: AnsweredAsk[] = [];
  readonly logs = new Map<string, LogEvent[]>();
  readonly gone: string[] = [];

  addSession(row: Session): void {
    this.removed.delete(row.sessionId);
    this.sessions.set(row.sessionId, row);
  }

  removeSession(sessionId: string): void {
    this.sessions.delete(sessionId);
    this.removed.add(sessionId);
  }

  addEvent(sessionId: string, event: LogEvent): void {
    const events = this.logs.get(sessionId);
    if (events) events.push(event);
    else this.logs.set(sessionId, [event]);
  }
}
