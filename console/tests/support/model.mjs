/** A Chat Completions server for our own agent that replies with the next step of the script of a prompt. */

import { createServer } from "node:http";

/**
 * One reply of the model: reasoning, text and tool calls. A reply that is held does not end before the server.
 * @typedef {{ think?: string, text?: string, calls?: { name: string, arguments: unknown }[], isHeld?: boolean }} ModelReply
 */

/** Until the first token, as of a fast model. */
const REPLY_MS = 150;

export class ScriptedModel {
  /** The replies that are left, by prompt. @type {Map<string, ModelReply[]>} */
  #scripts = new Map();
  #calls = 0;
  #server = createServer((request, response) => this.#serve(request, response));
  port = 0;

  static async start() {
    const model = new ScriptedModel();
    await new Promise((resolve) => model.#server.listen(0, "127.0.0.1", () => resolve(undefined)));
    model.port = /** @type {import("node:net").AddressInfo} */ (model.#server.address()).port;
    return model;
  }

  /** What `OPENAI_BASE_URL` takes. */
  get url() {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** Sets the replies to a prompt. @param {string} prompt @param {ModelReply[]} replies */
  script(prompt, replies) {
    this.#scripts.set(prompt, [...replies]);
  }

  /** Whether all replies to a prompt were requested. @param {string} prompt */
  isFinished(prompt) {
    return this.#scripts.get(prompt)?.length === 0;
  }

  /** The next reply to the prompt in a request. @param {string} body */
  #nextReply(body) {
    const [, replies] = [...this.#scripts].find(([prompt]) => body.includes(JSON.stringify(prompt).slice(1, -1))) ?? [];
    return replies?.shift() ?? { text: "The script of the model has no further reply." };
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async #serve(request, response) {
    let body = "";
    for await (const it of request) body += it;
    if (request.method !== "POST") return void response.end(JSON.stringify({ data: [{ id: "demo-large" }] }));
    const step = this.#nextReply(body);
    setTimeout(() => this.#reply(response, step), REPLY_MS);
  }

  /** @param {import("node:http").ServerResponse} response @param {ModelReply} step */
  #reply(response, step) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const delta of this.#deltas(step)) this.#write(response, { choices: [{ index: 0, delta }] });
    if (step.isHeld) return;
    const finish_reason = step.calls ? "tool_calls" : "stop";
    this.#write(response, { choices: [{ index: 0, delta: {}, finish_reason }] });
    const usage = { prompt_tokens: 8_412, completion_tokens: 296, total_tokens: 8_708 };
    this.#write(response, { choices: [], usage });
    response.end("data: [DONE]\n\n");
  }

  /** @param {ModelReply} step */
  #deltas({ think, text, calls = [] }) {
    /** @param {string} whole */
    const pieces = (whole) => whole.match(/[\s\S]{1,24}/g) ?? [];
    const thoughts = pieces(think ?? "").map((it) => ({ reasoning_content: it }));
    const texts = pieces(text ?? "").map((it) => ({ content: it }));
    const tool_calls = calls.map((it, index) => {
      this.#calls += 1;
      const called = { name: it.name, arguments: JSON.stringify(it.arguments) };
      return { index, id: `call-${this.#calls}`, type: "function", function: called };
    });
    return [...thoughts, ...texts, ...(calls.length > 0 ? [{ tool_calls }] : [])];
  }

  /** @param {import("node:http").ServerResponse} response @param {unknown} chunk */
  #write(response, chunk) {
    const id = { id: "chunk", object: "chat.completion.chunk", model: "demo-large" };
    response.write(`data: ${JSON.stringify({ ...id, .../** @type {object} */ (chunk) })}\n\n`);
  }
}
