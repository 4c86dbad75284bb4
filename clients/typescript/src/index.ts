/** Jackfield over HTTP: runs, sessions and asks, with streams that survive a cut connection. */

import type { components, operations, paths } from "./schema.js";
import { follow, type Patience } from "./sse.js";

export { Disconnected, read as readServerSentEvents, type Message as ServerSentEvent } from "./sse.js";

type Schemas = components["schemas"];

export type Agent = Schemas["Agent"];
/** What a run is made of. It does not end with the connection that made it. */
export type NewRun = Omit<Schemas["RunBody"], "cancelOnDisconnect">;
export type Prompt = Schemas["PromptBody"];
export type RunMade = Schemas["RunMade"];
export type Run = Schemas["RunShown"];
/** A session that is opened without a prompt. */
export type NewSession = Schemas["NewSessionBody"];
/** A directory in which sessions may work, and those in it. */
export type DirectoryList = Schemas["DirectoryList"];
export type Session = Schemas["Session"];
export type SessionShown = Schemas["SessionShown"];
export type SessionPage = Schemas["SessionList"];
export type Forked = Schemas["Forked"];
/** Modes, models, options and commands of a session, and what its agent accepts in a prompt. */
export type SessionSettings = Schemas["SessionSettings"];
/** One of `mode`, `model` and `option`. */
export type SettingsChange = Schemas["SettingsChange"];
/** A prompt that waits in the queue of a session. */
export type WaitingPrompt = Schemas["WaitingPrompt"];
/** An event of a session as an exported file has it. */
export type LogEvent = Schemas["LogEvent"];
/** A host of a fleet. */
export type Host = Schemas["Host"];
/** Places where a text occurs in a session. */
export type MatchList = Schemas["MatchList"];
/** Turns of a session as spans of time. */
export type SessionTurns = Schemas["SessionTurns"];
/** The files that a session changed. */
export type SessionChanges = Schemas["SessionChanges"];
/** Tokens and cost by day, agent, model or project. */
export type UsageTable = Schemas["UsageTable"];
/** Events of a session in order, with the number of its last event. */
export type LogPage = Schemas["LogPage"];
export type Ask = Schemas["Ask"];
/** One of the options by its id, `allow` or `deny` for this once, or what a form wants. */
export type Answer = Schemas["AnswerBody"];
/** What an agent does, in the same few words for every agent. */
export type AgentEvent = Schemas["AgentEvent"];
/** One message of a session, with an id that stays. */
export type Envelope = Schemas["Envelope"];
export type ErrorCode = Schemas["Code"];
/** The tenant and the device of a request. */
export type Me = Schemas["Me"];
/** A browser that has logged in. */
export type Device = Schemas["Device"];
/** Where and for whom notifications are encrypted. */
export type PushSubscriptionKeys = Schemas["SubscriptionBody"];
/** A link that logs in one browser, once, within 60 seconds. */
export type LoginLink = Schemas["LoginLink"];

/** `start`, then what the agent does, and at last `end`. */
export type RunEvent = Schemas["RunEvent"] & { id: string };
/** An event of a session in the chosen view; `gone` is the last one of a session that was deleted. */
export type SessionEvent<V extends View = "events"> = { id: string } & Extract<
  Schemas["SessionEvent"],
  { event: { events: "agent"; envelopes: "envelope"; acp: "message"; log: "log" }[V] | "gone" }
>;
/** A change of the lists of sessions and requests, or an event of a followed session. */
export type ListEvent = Schemas["ListEvent"] & { id: string };
/** How a session is told. */
export type View = "events" | "envelopes" | "acp" | "log";

/** An answer of Jackfield that is an error. */
export class JackfieldError extends Error implements Omit<Schemas["ApiError"], "retryable"> {
  override name = "JackfieldError";
  readonly code: ErrorCode;
  /** The same request may succeed a little later. */
  readonly retryable: boolean;
  readonly details: unknown;

  constructor(
    readonly status: number,
    error: Schemas["ApiError"],
  ) {
    super(error.message);
    this.code = error.code;
    this.retryable = error.retryable ?? status === 503;
    this.details = error.details;
  }
}

export interface Options extends Partial<Patience> {
  /** Where the daemon listens: `http://127.0.0.1:7456`. */
  url: string;
  /** What `jackfield token` prints. Without it, the cookie of a login is used, in pages that the daemon serves. */
  token?: string | undefined;
}

/** What every call takes. */
export interface Call {
  /** Ends the call, not what it has begun: a run goes on until somebody cancels it. */
  signal?: AbortSignal | undefined;
}

/** What a call takes that makes a run. */
export interface Making extends Call {
  /** With the same key and body no second run is made, also if the call is repeated after an error. At most 255 ASCII characters. */
  idempotencyKey?: string | undefined;
}

/** What every stream takes. */
export interface Reading extends Call {
  /** Begin behind the event with this id. */
  after?: string | undefined;
}

export class Jackfield {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #patience: Patience;

  constructor({ url, token, retries = 8, silenceMs = 45_000 }: Options) {
    this.#url = new URL(url).href.replace(/\/+$/, "");
    // Pages of other origins cannot set this header, which shows that a request with the cookie is not theirs.
    this.#headers = token === undefined ? { "x-jackfield-console": "1" } : { authorization: `Bearer ${token}` };
    this.#patience = { retries, silenceMs };
  }

  /** All agents; those that can be used come first. */
  async agents({ signal, ...query }: Call & { probe?: boolean } = {}): Promise<Agent[]> {
    const { agents } = await this.#ask("get", "/api/agents", { query, signal });
    return agents;
  }

  /** The directories in `path`, which is below one of the roots; without `path`, the roots. */
  directories({ signal, ...query }: Call & { path?: string } = {}): Promise<DirectoryList> {
    return this.#ask("get", "/api/directories", { query, signal });
  }

  /** The names of the configured MCP servers. */
  async mcpServers(call: Call = {}): Promise<string[]> {
    return (await this.#ask("get", "/api/mcp-servers", call)).servers;
  }

  /** The names of the sandbox profiles that a session can choose. */
  async sandboxProfiles(call: Call = {}): Promise<string[]> {
    return (await this.#ask("get", "/api/sandbox-profiles", call)).profiles;
  }

  /** Makes a run and tells its events, from `start` to `end`. Who stops reading does not end it. */
  async *run(body: NewRun, call: Making = {}): AsyncGenerator<RunEvent, void> {
    const { runId } = await this.runs.create(body, call);
    yield* this.runs.events(runId, { signal: call.signal });
  }

  /** The hosts of a fleet; none without a fleet. */
  readonly hosts = {
    list: async (call: Call = {}): Promise<Host[]> => (await this.#ask("get", "/api/hosts", call)).hosts,

    /** Moves the sessions of a host to others, or lets it accept sessions again. Returns how many it still has. */
    drain: async (name: string, drain = true, call: Call = {}): Promise<number> => {
      const request = { names: { name }, body: { drain }, ...call };
      return (await this.#ask("post", "/api/hosts/{name}/drain", request)).sessions;
    },
  };

  /** Tokens and cost over all sessions, as far as agents report them. */
  usage({ signal, ...query }: Call & Query<"show_usage"> = {}): Promise<UsageTable> {
    return this.#ask("get", "/api/usage", { query, signal });
  }

  /** Runs: prompts that were made here. */
  readonly runs = {
    /** Makes a run and leaves it to itself. */
    create: (body: NewRun, { idempotencyKey, signal }: Making = {}): Promise<RunMade> =>
      this.#ask("post", "/api/runs", { body, headers: keyHeader(idempotencyKey), signal }),

    get: (runId: string, call: Call = {}): Promise<Run> =>
      this.#ask("get", "/api/runs/{runId}", { names: { runId }, ...call }),

    /** The latest thousand since the daemon started, or all of a session. */
    list: async ({ signal, ...query }: Call & Query<"list_runs"> = {}): Promise<Run[]> =>
      (await this.#ask("get", "/api/runs", { query, signal })).runs,

    /** Ends it; what else waits in its session goes on. */
    cancel: async (runId: string, call: Call = {}): Promise<void> => {
      await this.#ask("post", "/api/runs/{runId}/cancel", { names: { runId }, ...call });
    },

    /** A run's events, from `start` to `end`, whenever it was made. */
    events: (runId: string, reading: Reading = {}): AsyncGenerator<RunEvent, void> =>
      this.#events("/api/runs/{runId}/events", { names: { runId } }, "end", reading),
  };

  /** Sessions, whoever opened them. */
  readonly sessions = {
    /** A page, the latest first; `nextCursor` as `cursor` gets the next one. */
    list: ({ signal, ...query }: Call & Query<"list_sessions"> = {}): Promise<SessionPage> =>
      this.#ask("get", "/api/sessions", { query, signal }),

    /** Opens a session without a prompt. The agent has started when this returns. */
    create: (body: NewSession, { signal }: Call = {}): Promise<Session> =>
      this.#ask("post", "/api/sessions", { body, signal }),

    get: (sessionId: string, options: Call & { usage?: boolean } = {}): Promise<SessionShown> => {
      const { signal, ...query } = options;
      return this.#ask("get", "/api/sessions/{sessionId}", { names: { sessionId }, query, signal });
    },

    /** A run that goes on where the session is. */
    prompt: (sessionId: string, body: Prompt, call: Making = {}): Promise<RunMade> => {
      const { idempotencyKey, signal } = call;
      const headers = keyHeader(idempotencyKey);
      return this.#ask("post", "/api/sessions/{sessionId}/prompt", { names: { sessionId }, body, headers, signal });
    },

    /** A session with the same past, up to the event `at`, and a future of its own. */
    fork: (sessionId: string, options: Call & { at?: number } = {}): Promise<Forked> => {
      const { signal, ...body } = options;
      return this.#ask("post", "/api/sessions/{sessionId}/fork", { names: { sessionId }, body, signal });
    },

    /** Gives the session this name; `null` removes its name. */
    rename: async (sessionId: string, name: string | null, call: Call = {}): Promise<void> => {
      await this.#ask("patch", "/api/sessions/{sessionId}", { names: { sessionId }, body: { name }, ...call });
    },

    /** Cancels the running turn and withdraws queued prompts; fails with `CONFLICT` if no turn runs. */
    cancel: async (sessionId: string, call: Call = {}): Promise<void> => {
      await this.#ask("post", "/api/sessions/{sessionId}/cancel", { names: { sessionId }, ...call });
    },

    /** What the agent offers in this session. The agent need not run. */
    settings: (sessionId: string, call: Call = {}): Promise<SessionSettings> =>
      this.#ask("get", "/api/sessions/{sessionId}/settings", { names: { sessionId }, ...call }),

    /** Changes a setting, and returns all of them. The agent is restored if it does not run. */
    configure: (sessionId: string, body: SettingsChange, call: Call = {}): Promise<SessionSettings> =>
      this.#ask("patch", "/api/sessions/{sessionId}/settings", { names: { sessionId }, body, ...call }),

    /** Ends its agent; the log stays, and a prompt wakes it. */
    close: async (sessionId: string, call: Call = {}): Promise<void> => {
      await this.#ask("post", "/api/sessions/{sessionId}/close", { names: { sessionId }, ...call });
    },

    /** Removes it with its log, for good. */
    delete: async (sessionId: string, call: Call = {}): Promise<void> => {
      await this.#ask("delete", "/api/sessions/{sessionId}", { names: { sessionId }, ...call });
    },

    /** Where a text occurs in it, the newest first. */
    find: (sessionId: string, text: string, options: Call & Omit<Query<"find_in_session">, "text"> = {}): Promise<MatchList> => {
      const { signal, ...query } = options;
      return this.#ask("get", "/api/sessions/{sessionId}/find", { names: { sessionId }, query: { text, ...query }, signal });
    },

    /** Its last turns as spans of time, or those before a turn. */
    timeline: (sessionId: string, options: Call & Query<"session_timeline"> = {}): Promise<SessionTurns> => {
      const { signal, ...query } = options;
      return this.#ask("get", "/api/sessions/{sessionId}/timeline", { names: { sessionId }, query, signal });
    },

    /** The files that it changed, by turn and in its git repository. */
    changes: (sessionId: string, call: Call = {}): Promise<SessionChanges> =>
      this.#ask("get", "/api/sessions/{sessionId}/changes", { names: { sessionId }, ...call }),

    /** The diff of one file of its git repository against the last commit. */
    diff: async (sessionId: string, path: string, call: Call = {}): Promise<string> => {
      const request = { names: { sessionId }, query: { path }, ...call };
      return (await this.#ask("get", "/api/sessions/{sessionId}/changes/diff", request)).diff;
    },

    /** A page of its events: the last ones, or those before or after an event. */
    log: (sessionId: string, options: Call & Query<"session_log"> = {}): Promise<LogPage> => {
      const { signal, ...query } = options;
      return this.#ask("get", "/api/sessions/{sessionId}/log", { names: { sessionId }, query, signal });
    },

    /** All that was said in it, and then what is being said, until it is deleted. */
    events: <V extends View = "events">(
      sessionId: string,
      { view, additions, ...reading }: Reading & { view?: V; additions?: boolean } = {},
    ): AsyncGenerator<SessionEvent<V>, void> => {
      const query = { view, additions: additions ? ("1" as const) : undefined };
      const request = { names: { sessionId }, query };
      return this.#events("/api/sessions/{sessionId}/events", request, "gone", reading);
    },
  };

  /** The prompts that wait in a session. */
  readonly queue = {
    /** In the order in which they run; held prompts, which an earlier daemon left, come last. */
    list: async (sessionId: string, call: Call = {}): Promise<WaitingPrompt[]> =>
      (await this.#ask("get", "/api/sessions/{sessionId}/queue", { names: { sessionId }, ...call })).prompts,

    /** Withdraws a prompt: it will not run. */
    withdraw: async (sessionId: string, prompt: number, call: Call = {}): Promise<void> => {
      const names = { sessionId, prompt };
      await this.#ask("delete", "/api/sessions/{sessionId}/queue/{prompt}", { names, ...call });
    },

    /** Places a prompt before another one, or at the end of the queue if `before` is `null`. */
    move: async (sessionId: string, prompt: number, before: number | null, call: Call = {}): Promise<void> => {
      const request = { names: { sessionId, prompt }, body: { before }, ...call };
      await this.#ask("post", "/api/sessions/{sessionId}/queue/{prompt}/move", request);
    },

    /** Runs a held prompt. */
    run: async (sessionId: string, prompt: number, call: Call = {}): Promise<void> => {
      const names = { sessionId, prompt };
      await this.#ask("post", "/api/sessions/{sessionId}/queue/{prompt}/run", { names, ...call });
    },
  };

  /** What agents ask and nobody has answered. */
  readonly asks = {
    /** The oldest first. */
    list: async (call: Call = {}): Promise<Ask[]> => (await this.#ask("get", "/api/asks", call)).asks,

    /** The first answer counts; a later one is refused with `CONFLICT`. */
    answer: async (
      { sessionId, ask }: Pick<Ask, "sessionId" | "ask">,
      body: Answer,
      call: Call = {},
    ): Promise<void> => {
      const request = { names: { sessionId, ask }, body, ...call };
      await this.#ask("post", "/api/asks/{sessionId}/{ask}", request);
    },
  };

  /** The tenant and the device of this client. */
  me(call: Call = {}): Promise<Me> {
    return this.#ask("get", "/api/me", call);
  }

  /** Logging in browsers. */
  readonly logins = {
    /** Creates a login link; only with a token. The browser opens `/console/login#code=CODE`. */
    createLink: ({ tenant, signal }: Call & { tenant?: string } = {}): Promise<LoginLink> =>
      this.#ask("post", "/api/login-links", { body: { tenant }, signal }),

    /** Logs in this browser: the daemon sets a cookie that scripts cannot read. */
    logIn: (code: string, deviceName: string, call: Call = {}): Promise<Me> =>
      this.#ask("post", "/api/login", { body: { code, deviceName }, ...call }),

    /** Logs out this browser. */
    logOut: async (call: Call = {}): Promise<void> => {
      await this.#send("post", "/api/logout", call);
    },
  };

  /** Notifications in this browser, while no page of it is open. */
  readonly push = {
    /** `applicationServerKey` of `PushManager.subscribe()`. */
    key: async (call: Call = {}): Promise<string> => (await this.#ask("get", "/api/push/key", call)).key,

    /** Notifies this browser, with what `PushSubscription.toJSON()` gives. */
    subscribe: async (body: PushSubscriptionKeys, call: Call = {}): Promise<void> => {
      await this.#send("post", "/api/push/subscriptions", { body, ...call });
    },

    unsubscribe: async (call: Call = {}): Promise<void> => {
      await this.#send("delete", "/api/push/subscriptions", call);
    },
  };

  /** The browsers that have logged in. */
  readonly devices = {
    /** The last used first. */
    list: async (call: Call = {}): Promise<Device[]> => (await this.#ask("get", "/api/devices", call)).devices,

    rename: (deviceId: string, name: string, call: Call = {}): Promise<Device> =>
      this.#ask("patch", "/api/devices/{deviceId}", { names: { deviceId }, body: { name }, ...call }),

    /** Its login is no longer accepted, and its streams end within a second. */
    revoke: async (deviceId: string, call: Call = {}): Promise<void> => {
      await this.#send("delete", "/api/devices/{deviceId}", { names: { deviceId }, ...call });
    },
  };

  async #ask<P extends keyof paths, M extends Method>(
    method: M,
    path: P,
    request: Request<P>,
  ): Promise<Json<paths[P][M]>> {
    const response = await this.#send(method, path, request);
    return (await response.json()) as Json<paths[P][M]>;
  }

  /**
   * The changes of all sessions and requests in one stream, which starts with the existing ones, and the events of
   * followed sessions after the given sequence numbers. A lost connection is opened again where it ended.
   */
  async *changes(
    { follow = {}, ...reading }: Reading & { follow?: Record<string, number> } = {},
  ): AsyncGenerator<ListEvent, void> {
    const positions = new Map(Object.entries(follow));
    // Read for each connection: the positions advance.
    const query = {
      get follow() {
        return [...positions].map(([id, seq]) => `${id}:${seq}`);
      },
    };
    for await (const event of this.#events<"/api/events", ListEvent>("/api/events", { query }, "", reading)) {
      if (event.event === "log") positions.set(event.data.sessionId, event.data.event.seq);
      if (event.event === "gone") positions.delete(event.data.sessionId);
      yield event;
    }
  }

  async *#events<P extends keyof paths, Event>(
    path: P,
    request: Request<P>,
    last: string,
    { after, signal }: Reading,
  ): AsyncGenerator<Event, void> {
    const open = async (after: string, signal: AbortSignal) => {
      const headers: Record<string, string> = after === "" ? {} : { "last-event-id": after };
      const { body } = await this.#send("get", path, { ...request, headers, signal });
      if (!body) throw new TypeError("this `fetch` has no streams");
      return body;
    };
    // Other errors are those of the network.
    const mayPass = (error: unknown) => !(error instanceof JackfieldError) || error.retryable;
    const messages = follow({ open, mayPass, last, after, signal, ...this.#patience });
    for await (const { id, event, data } of messages) {
      yield { id, event, data: JSON.parse(data) } as Event;
    }
  }

  async #send(method: Method, path: string, request: Request<string>): Promise<Response> {
    const { names = {}, query = {}, body, headers, signal = null } = request;
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""));
    const url = new URL(this.#url + filled);
    for (const [name, value] of Object.entries(query)) {
      for (const it of [value ?? []].flat()) url.searchParams.append(name, String(it));
    }
    const init: RequestInit = { method: method.toUpperCase(), signal };
    init.headers = { ...this.#headers, ...headers };
    if (method === "post" || method === "patch") {
      init.headers["content-type"] = "application/json";
      init.body = JSON.stringify(body ?? {});
    }
    const response = await fetch(url, init);
    if (!response.ok) throw await failure(response);
    return response;
  }
}

/** What a request is made of; a path says which names it wants. */
interface Request<Path extends string> extends Call {
  names?: { [Name in Names<Path>]: string | number };
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
}

type Names<Path extends string> = string extends Path
  ? string
  : Path extends `${string}{${infer Name}}${infer Rest}`
    ? Name | Names<Rest>
    : never;

type Method = "get" | "post" | "patch" | "delete";
type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
/** The JSON that an operation answers with when all is well. */
type Json<Operation> = Operation extends { responses: infer All }
  ? Extract<All[keyof All & (200 | 201 | 202)], Body>["content"]["application/json"]
  : never;
type Body = { content: { "application/json": unknown } };

/** A string as the draft of the header wants it. */
function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { "idempotency-key": `"${key.replace(/["\\]/g, "\\$&")}"` };
}

async function failure(response: Response): Promise<JackfieldError> {
  const { status } = response;
  const body: Partial<Schemas["ErrorBody"]> | undefined = await response.json().catch(() => undefined);
  const message = `HTTP ${status}, and not from Jackfield: is \`url\` right?`;
  const other = { code: "UPSTREAM_UNAVAILABLE", message, retryable: 500 <= status } as const;
  return new JackfieldError(status, body?.error ?? other);
}
