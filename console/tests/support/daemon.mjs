/**
 * A real daemon for browser tests: the folders, the binary and the fake agent come from the environment that
 * `crates/e2e/tests/console` sets.
 */

import { execFile, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "./wait.mjs";

const run = promisify(execFile);

/** @param {string} name */
const required = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this with cargo nextest run -p jackfield-e2e console`);
  return value;
};

export const home = required("HOME");
const binary = required("JACKFIELD_BINARY");
const fakeAgent = required("FAKE_AGENT");
const mark = required("E2E_MARK");

/** A folder in which agents work. */
export const workspace = join(home, "work");

export class Daemon {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #process;
  port = 0;

  /**
   * Starts a daemon with the fake agent under the name `fake`.
   * @param {{ flags?: string[], config?: string }} [options] flags of the agent, and more configuration
   */
  static async start({ flags = [], config = "" } = {}) {
    mkdirSync(join(home, "config"), { recursive: true });
    mkdirSync(workspace, { recursive: true });
    const command = [fakeAgent, "--marker", mark, "--state", join(home, "agent"), ...flags];
    const roots = config.includes("[http]") ? "" : `[http]\nroots = [${JSON.stringify(workspace)}]\n`;
    const text = `${config}\n${roots}[agents.fake]\ncommand = ${JSON.stringify(command)}\n`;
    writeFileSync(join(home, "config", "config.toml"), text);
    const daemon = new Daemon();
    await daemon.restart();
    return daemon;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get token() {
    return readFileSync(join(home, "state", "token"), "utf8").trim();
  }

  /** Starts the daemon again, on the same port. */
  async restart() {
    const path = join(home, "serve.stderr");
    const log = openSync(path, "a");
    const before = readFileSync(path, "utf8").length;
    const listen = `http://127.0.0.1:${this.port}`;
    this.#process = spawn(binary, ["serve", "--listen", listen], { stdio: ["ignore", "ignore", log] });
    const printed = () => /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(path, "utf8").slice(before));
    this.port = Number((await waitFor("the daemon to listen", printed))[1]);
    await waitFor("the daemon to be ready", async () => (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok);
  }

  /** Ends the daemon with this signal and waits for it. @param {NodeJS.Signals} signal */
  async end(signal = "SIGTERM") {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  /** Runs a command of the CLI and returns its stdout. @param {string[]} args */
  async cli(...args) {
    const { stdout } = await run(binary, args, { cwd: workspace });
    return stdout;
  }

  /** Calls the API with the operator's token. @param {string} method @param {string} path @param {unknown} [body] */
  async api(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(this.url + path, init);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return /** @type {any} */ (text === "" ? undefined : JSON.parse(text));
  }

  /** Opens a session with this first prompt and returns its id. @param {string} message */
  async openSession(message) {
    const run = await this.api("POST", "/api/runs", { agentId: "fake", cwd: workspace, message });
    return /** @type {string} */ (run.sessionId);
  }

  /** Sends a prompt. @param {string} sessionId @param {string} message */
  async prompt(sessionId, message) {
    return this.api("POST", `/api/sessions/${sessionId}/prompt`, { message });
  }

  /** Waits until a session is in this state. @param {string} sessionId @param {string} state */
  async waitForState(sessionId, state) {
    await waitFor(`session ${sessionId} to be ${state}`, async () => {
      const session = await this.api("GET", `/api/sessions/${sessionId}`).catch(() => undefined);
      return session?.state === state;
    });
  }

  /** A one-time address that signs a browser in. */
  async loginUrl() {
    const { code } = await this.api("POST", "/api/login-links", {});
    return `${this.url}/console/login#code=${code}`;
  }
}
