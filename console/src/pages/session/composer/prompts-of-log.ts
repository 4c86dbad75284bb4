/** The earlier prompts of a session, read from the end of its log. */

import { readLog } from "../../../api/log";
import { promptText } from "./prompt-history";

const PROMPTS_WANTED = 50;
/** Prompts are rare among the events of long turns. */
const PAGES_MAX = 5;
const PAGE_EVENTS = 1000;

/** The latest prompts, the oldest first. */
export async function loadPrompts(sessionId: string): Promise<string[]> {
  let prompts: string[] = [];
  let before: number | undefined;
  for (let pages = 0; pages < PAGES_MAX && prompts.length < PROMPTS_WANTED; pages++) {
    const page = await readLog(sessionId, { limit: PAGE_EVENTS, ...(before !== undefined && { before }) });
    prompts = [...page.events.flatMap((it) => promptText(it) ?? []), ...prompts];
    before = page.events[0]?.seq;
    if (!page.hasBefore || before === undefined) break;
  }
  return prompts;
}
