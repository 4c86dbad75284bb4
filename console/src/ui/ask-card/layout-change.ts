/** When cards of requests last moved on the page because another one appeared or disappeared. */

import { createSignal } from "solid-js";

const [layoutChangedAt, setChangedAt] = createSignal(-Infinity);

/** In milliseconds of `performance.now()`. */
export { layoutChangedAt };

export const noteLayoutChange = (): void => void setChangedAt(performance.now());
