/** The tab "Timeline" of a session: each turn as a waterfall of spans, the last turn first. */

import { createEffect, createSignal, For, on, onCleanup, Show, type JSX } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { errorText, isSignedOut } from "../../../api/client";
import { readTimeline, type TimelineTurn } from "../../../api/timeline";
import { connection, sessionRows } from "../../../state/daemon";
import "../../../ui/page.css";
import "./timeline.css";
import { TurnTable } from "./turn-table";
import { TurnWaterfall } from "./turn-waterfall";

const PAGE_TURNS = 20;
/** A running turn is requested again at most this often. */
const REFRESH_MS = 2_000;

export default function Timeline(props: { sessionId: string }): JSX.Element {
  const [turns, setTurns] = createStore<TimelineTurn[]>([]);
  const [hasLoaded, setLoaded] = createSignal(false);
  const [problem, setProblem] = createSignal<string>();
  const [hasBefore, setHasBefore] = createSignal(false);
  const [isTable, setTable] = createSignal(false);

  /** Adds turns, replaces those that are known, and keeps the last turn first. */
  const addTurns = (added: TimelineTurn[]): void => {
    const byNumber = new Map([...turns, ...added].map((it) => [it.turn, it]));
    setTurns(reconcile([...byNumber.values()].toSorted((a, b) => b.turn - a.turn), { key: "turn" }));
  };
  const load = async (before?: number): Promise<void> => {
    const { sessionId } = props;
    try {
      const page = await readTimeline(sessionId, PAGE_TURNS, before);
      if (sessionId !== props.sessionId) return;
      // Of the page with the earliest turn.
      if (before !== undefined || turns.length === 0) setHasBefore(page.hasBefore);
      addTurns(page.turns);
      setProblem(undefined);
      setLoaded(true);
    } catch (error) {
      if (!isSignedOut(error)) setProblem(errorText(error));
    }
  };
  refreshOnChange(() => props.sessionId, load, () => {
    setTurns(reconcile([]));
    setLoaded(false);
  });

  return (
    <div class="page timeline">
      <div class="page-header">
        <p class="muted timeline-hint">Each turn, the last one first. A bar leads to its event.</p>
        <button type="button" aria-pressed={isTable()} onClick={() => setTable(!isTable())}>
          Show as tables
        </button>
      </div>
      <Show when={problem()}>
        {(text) => (
          <div class="notice danger" role="alert">
            <p>{text()}</p>
            <button type="button" onClick={() => void load()}>
              Try again
            </button>
          </div>
        )}
      </Show>
      <Show when={hasLoaded() || problem() !== undefined} fallback={<p class="loading">Loading…</p>}>
        <For each={turns} fallback={<p class="muted">{problem() === undefined ? "The session has no turns yet." : ""}</p>}>
          {(turn) => (
            <Show when={isTable()} fallback={<TurnWaterfall sessionId={props.sessionId} turn={turn} />}>
              <TurnTable sessionId={props.sessionId} turn={turn} />
            </Show>
          )}
        </For>
      </Show>
      <Show when={hasBefore()}>
        <button type="button" onClick={() => void load(turns.at(-1)?.turn)}>
          Earlier turns
        </button>
      </Show>
    </div>
  );
}

/** Loads when the session is shown, when it has new events (at a limited rate), and when the connection is back. */
function refreshOnChange(sessionId: () => string, load: () => Promise<void>, clear: () => void): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));
  createEffect(
    on(sessionId, () => {
      clear();
      void load();
    }),
  );
  const changes = () => [sessionRows[sessionId()]?.events, sessionRows[sessionId()]?.state, connection().status === "live"];
  createEffect(
    on(
      changes,
      () => {
        timer ??= setTimeout(() => {
          timer = undefined;
          void load();
        }, REFRESH_MS);
      },
      { defer: true },
    ),
  );
}
