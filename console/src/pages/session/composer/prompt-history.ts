/** The prompts of a session for the arrow keys, and how they are read from its log. */

import type { LogEvent } from "../../../api/stream/messages";
import { frameParams, listMember, stringMember } from "../../../transcript/item";

export class PromptHistory {
  /** The oldest first. */
  #prompts: string[];
  #position: number;

  constructor(prompts: string[]) {
    this.#prompts = withoutRepetitions(prompts);
    this.#position = this.#prompts.length;
  }

  /** Puts the prompts of the log before those that were added. */
  fill(prompts: string[]): void {
    this.#prompts = withoutRepetitions([...prompts, ...this.#prompts]);
    this.leave();
  }

  /** Whether the box shows a prompt of the history. */
  get isBrowsing(): boolean {
    return this.#position < this.#prompts.length;
  }

  /** The prompt before the current one. */
  previous(): string | undefined {
    if (this.#position === 0) return undefined;
    this.#position -= 1;
    return this.#prompts[this.#position];
  }

  /** The prompt after the current one; after the last one, the empty box. */
  next(): string | undefined {
    if (!this.isBrowsing) return undefined;
    this.#position += 1;
    return this.#prompts[this.#position] ?? "";
  }

  /** The user edits the text: the next step starts at the end again. */
  leave(): void {
    this.#position = this.#prompts.length;
  }

  add(prompt: string): void {
    if (prompt.trim() !== "" && prompt !== this.#prompts.at(-1)) this.#prompts.push(prompt);
    this.leave();
  }
}

const withoutRepetitions = (prompts: string[]): string[] =>
  prompts.filter((it, index) => it.trim() !== "" && it !== prompts[index - 1]);

/** The text of a prompt that was queued or has started; a prompt that was queued first is counted once. */
export function promptText(event: LogEvent): string | undefined {
  const isPrompt = event.is === "queued" || (event.is === "prompted" && event["prompt"] === undefined);
  if (!isPrompt) return undefined;
  const texts = listMember(frameParams(event), "prompt").filter((it) => stringMember(it, "type") === "text");
  return texts.map((it) => stringMember(it, "text")).join("\n");
}
