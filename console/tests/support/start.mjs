/** Starts what the tests of a file use, and ends it after the last of them. */

import { after } from "node:test";
import { Browser } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { openDemoSessions } from "./demo.mjs";
import { ScriptedModel } from "./model.mjs";

/** A daemon and a browser. @param {Parameters<typeof Daemon.start>[0]} [options] options of the daemon */
export async function startDaemonAndBrowser(options) {
  const [daemon, browser] = await Promise.all([Daemon.start(options), Browser.start()]);
  after(async () => {
    await browser.close();
    await daemon.end();
  });
  return { daemon, browser };
}

/** The same with our own agent under two names, whose model is scripted, and the sessions of the demo. */
export async function startDemo() {
  const model = await ScriptedModel.start();
  const command = JSON.stringify([process.env["JACKFIELD_BINARY"], "agent"]);
  const env = `{ OPENAI_BASE_URL = "${model.url}", OPENAI_MODEL = "demo-large", OPENAI_API_KEY = "none" }`;
  const agents = ["assistant", "reviewer"].map((name) => `[agents.${name}]\ncommand = ${command}\nenv = ${env}\n`);
  const started = await startDaemonAndBrowser({ config: agents.join("") });
  after(() => model.close());
  return { ...started, sessions: await openDemoSessions(started.daemon, model) };
}
