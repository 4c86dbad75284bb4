/**
 * Prompts on their way to the daemon. Each has an idempotency key and stays here until the daemon has confirmed it, also
 * over a lost connection and a reload of the page, so a prompt is never lost and never runs twice.
 */

export interface OutboxPrompt {
  /** The idempotency key. */
  key: string;
  message: string;
  imagePaths: string[];
  steer: boolean;
  /** When it was written, in Unix milliseconds. */
  at: number;
  /** Why the daemon refused it. It is not sent again. */
  problem?: string;
}

export interface OutboxParts {
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  send(prompt: OutboxPrompt): Promise<void>;
  /** Whether sending the prompt again with its key can succeed. */
  canRetry(error: unknown): boolean;
  describe(error: unknown): string;
  now(): number;
  onChange(prompts: readonly OutboxPrompt[]): void;
}

/** The daemon remembers keys for 24 hours. An older prompt is not sent by itself. */
const AGE_MS_MAX = 12 * 3_600_000;

export class PromptOutbox {
  readonly #name: string;
  readonly #parts: OutboxParts;
  #prompts: OutboxPrompt[];
  #isSending = false;

  constructor(sessionId: string, parts: OutboxParts) {
    this.#name = `outbox/${sessionId}`;
    this.#parts = parts;
    this.#prompts = readPrompts(parts.storage.getItem(this.#name));
    parts.onChange(this.#prompts);
  }

  /** Adds a prompt and sends it as soon as possible. */
  add(prompt: OutboxPrompt): Promise<void> {
    this.#set([...this.#prompts, prompt]);
    return this.flush();
  }

  remove(key: string): void {
    this.#set(this.#prompts.filter((it) => it.key !== key));
  }

  /** Sends what waits, in order, until the connection fails. */
  async flush(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let next = this.#next(); next !== undefined; next = this.#next()) if (!(await this.#sendOne(next))) break;
    } finally {
      this.#isSending = false;
    }
  }

  #next(): OutboxPrompt | undefined {
    return this.#prompts.find((it) => it.problem === undefined);
  }

  /** Returns whether the next prompt may be sent. */
  async #sendOne(prompt: OutboxPrompt): Promise<boolean> {
    if (prompt.at + AGE_MS_MAX < this.#parts.now()) {
      this.#refuse(prompt, "it was written long ago and may have run since");
      return true;
    }
    try {
      await this.#parts.send(prompt);
      this.remove(prompt.key);
      return true;
    } catch (error) {
      if (this.#parts.canRetry(error)) return false;
      this.#refuse(prompt, this.#parts.describe(error));
      return true;
    }
  }

  #refuse(prompt: OutboxPrompt, problem: string): void {
    this.#set(this.#prompts.map((it) => (it.key === prompt.key ? { ...it, problem } : it)));
  }

  #set(prompts: OutboxPrompt[]): void {
    this.#prompts = prompts;
    try {
      if (prompts.length === 0) this.#parts.storage.removeItem(this.#name);
      else this.#parts.storage.setItem(this.#name, JSON.stringify(prompts));
    } catch {
      // The storage is full or not permitted: the prompts are kept while the page is open.
    }
    this.#parts.onChange(prompts);
  }
}

function readPrompts(text: string | null): OutboxPrompt[] {
  try {
    const prompts: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(prompts) ? prompts : [];
  } catch {
    return [];
  }
}
