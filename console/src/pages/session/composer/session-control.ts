/** What the composer knows about its session: the queue, the settings of the agent, and whether a turn runs. */

import type { SessionSettings, SettingsChange, WaitingPrompt } from "jackfield-client";
import { createEffect, createMemo, createSignal, on, onCleanup, type Accessor } from "solid-js";
import { api, errorText } from "../../../api/client";
import type { LogEvent } from "../../../api/stream/messages";
import { followLog, sessionRows, type LogFollower } from "../../../state/daemon";
import type { QueueMove } from "./queue-moves";

export interface SessionControl {
  queue: Accessor<WaitingPrompt[]>;
  settings: Accessor<SessionSettings | undefined>;
  /** Whether a turn runs, so that a prompt waits or steers. */
  isRunning: Accessor<boolean>;
  /** What failed last. */
  problem: Accessor<string>;
  /** The prompts that a cancel of the turn withdraws. */
  withdrawnByCancel: Accessor<WaitingPrompt[]>;
  cancelTurn(): Promise<void>;
  withdraw(prompt: number): Promise<void>;
  runHeld(prompt: number): Promise<void>;
  move(move: QueueMove): Promise<void>;
  changeSetting(change: SettingsChange): Promise<void>;
  reload(): void;
}

const RUNNING_STATES = ["working", "asks", "quiet", "starting", "waiting", "stalled"];
/** Events that change the queue, and events that change the settings. */
const QUEUE_EVENTS = ["queued", "withdrawn", "prompted", "reordered", "bound", "closed"];
const SETTING_EVENTS = ["opened", "configured", "bound"];
const SETTING_UPDATES = ["available_commands_update", "current_mode_update", "config_option_update"];

export function createSessionControl(sessionId: string): SessionControl {
  const [queue, setQueue] = createSignal<WaitingPrompt[]>([]);
  const [settings, setSettings] = createSignal<SessionSettings>();
  const [problem, setProblem] = createSignal("");
  // A session without these routes or that is gone says so elsewhere on the page.
  const loadQueue = createLatest(() => api.queue.list(sessionId), setQueue);
  const loadSettings = createLatest(() => api.sessions.settings(sessionId), (it) => setSettings(() => it));
  const reload = (): void => {
    loadQueue();
    loadSettings();
  };
  const act = async (action: Promise<unknown>, then: () => void): Promise<void> => {
    try {
      await action;
      setProblem("");
    } catch (error) {
      setProblem(errorText(error));
    }
    then();
  };
  reload();
  // The session is followed from its last event; before its row is known, that event is not known either.
  createEffect(
    on(
      createMemo(() => sessionRows[sessionId] !== undefined),
      (isKnown) => {
        if (!isKnown) return;
        const follower: LogFollower = {
          onEvents: (events) => {
            if (events.some((it) => QUEUE_EVENTS.includes(it.is))) loadQueue();
            if (events.some(changesSettings)) loadSettings();
          },
          onPosition: reload,
          onGone: () => {},
        };
        onCleanup(followLog(sessionId, sessionRows[sessionId]?.events ?? 0, follower));
      },
    ),
  );
  return {
    queue,
    settings,
    problem,
    isRunning: () => RUNNING_STATES.includes(sessionRows[sessionId]?.state ?? ""),
    // Held prompts stay, because they do not run by themselves.
    withdrawnByCancel: () => queue().filter((it) => !it.held),
    cancelTurn: () => act(api.sessions.cancel(sessionId), loadQueue),
    withdraw: (prompt) => act(api.queue.withdraw(sessionId, prompt), loadQueue),
    runHeld: (prompt) => act(api.queue.run(sessionId, prompt), loadQueue),
    move: ({ prompt, before }) => act(api.queue.move(sessionId, prompt, before), loadQueue),
    changeSetting: (change) => act(api.sessions.configure(sessionId, change), loadSettings),
    reload,
  };
}

function changesSettings(event: LogEvent): boolean {
  if (SETTING_EVENTS.includes(event.is)) return true;
  const frame = event["frame"] as { params?: { update?: { sessionUpdate?: string } } } | undefined;
  return event.is === "said" && SETTING_UPDATES.includes(frame?.params?.update?.sessionUpdate ?? "");
}

/** Loads again on each call, at most one request at a time; a call during a request is followed by one more. */
function createLatest<T>(load: () => Promise<T>, onData: (data: T) => void): () => void {
  let isLoading = false;
  let isStale = false;
  const run = async (): Promise<void> => {
    if (isLoading) return void (isStale = true);
    isLoading = true;
    do {
      isStale = false;
      await load().then(onData, () => {});
    } while (isStale);
    isLoading = false;
  };
  return () => void run();
}
