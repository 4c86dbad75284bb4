/** The current time as a signal, for ages on the page. */

import { createSignal } from "solid-js";

const TICK_MS = 15_000;
const [now, setNow] = createSignal(Date.now());
setInterval(() => setNow(Date.now()), TICK_MS);
document.addEventListener("visibilitychange", () => setNow(Date.now()));

/** Unix milliseconds, updated every 15 seconds. */
export { now };
