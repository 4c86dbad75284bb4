/** The tab "Changes" of a session. */

import type { JSX } from "solid-js";

export default function Changes(_props: { sessionId: string }): JSX.Element {
  return <p class="loading">The changes of a session are not shown yet.</p>;
}
