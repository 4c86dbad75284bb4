/** Server-sent events over `fetch`, read on behind the last one when the connection is cut. */

/** One event as it came. */
export interface Message {
  /** The last id that was told. */
  id: string;
  event: string;
  data: string;
}

/** How a stream is kept up. */
export interface Patience {
  /** Attempts in a row that bring nothing, before the reader is told. */
  retries: number;
  /** The server says something every 15 seconds: a connection that is silent for so long is dead. */
  silenceMs: number;
}

/** The connection was cut, and so were all attempts to go on. The last one's error is the cause. */
export class Disconnected extends Error {
  override name = "Disconnected";
}

export interface Follow extends Patience {
  /** Opens the stream behind this event. Throws what `mayPass` is asked about. */
  open(after: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Whether an error of `open` is worth another attempt. */
  mayPass(error: unknown): boolean;
  /** The name of the event that ends the stream. */
  last: string;
  /** Begin behind this event. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** All events up to the last, each once: a connection that ends before is opened again. */
export async function* follow(options: Follow): AsyncGenerator<Message, void> {
  const { open, mayPass, last, retries, silenceMs, signal } = options;
  let after = options.after ?? "";
  for (let failures = 0; ; failures += 1) {
    const line = new AbortController();
    const both = signal ? AbortSignal.any([signal, line.signal]) : line.signal;
    const soon: Soon = (wait) => {
      const silent = () => line.abort(new Error(`nothing was heard for ${silenceMs} ms`));
      const timer = setTimeout(silent, silenceMs);
      return wait.finally(() => clearTimeout(timer));
    };
    let why: unknown = new Error("the server closed the connection");
    try {
      const body = await soon(open(after, both));
      for await (const message of read(body, after, soon)) {
        failures = 0;
        if (message === undefined) continue;
        after = message.id;
        yield message;
        if (message.event === last) return;
      }
    } catch (error) {
      if (signal?.aborted || !mayPass(error)) throw error;
      why = error;
    } finally {
      line.abort();
    }
    if (retries <= failures) {
      throw new Disconnected(`the connection was lost ${failures + 1} times`, { cause: why });
    }
    await pause(Math.min(100 * 2 ** failures, 5000), signal);
  }
}

/** Gives up the connection if this takes too long. */
type Soon = <T>(wait: Promise<T>) => Promise<T>;

/**
 * Reads the events of one connection, and yields `undefined` for each keep-alive comment.
 * An event that is cut off is dropped. `id` is the id before the first event; `wait` may limit the time of each read.
 */
export async function* read(
  body: ReadableStream<Uint8Array>,
  id = "",
  wait: Soon = (it) => it,
): AsyncGenerator<Message | undefined, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [rest, event, data] = ["", "", [] as string[]];
  for (;;) {
    const { done, value } = await wait(reader.read());
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    // A long event arrives in many chunks: it is searched once, when its line is complete.
    if (!value.includes(LF)) continue;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map((it) => it.replace(/\r$/, ""))) {
      const [, name, text = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (line === "") {
        if (0 < data.length) yield { id, event: event || "message", data: data.join("\n") };
        [event, data] = ["", []];
      } else if (name === "") yield;
      else if (name === "id") id = text;
      else if (name === "event") event = text;
      else if (name === "data") data.push(text);
    }
  }
}

const LF = 10;

/** Waits, unless somebody does not want to wait any longer. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
