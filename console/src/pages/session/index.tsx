/** The page "Session". */

import type { JSX } from "solid-js";

export default function SessionPage(): JSX.Element {
  return <h1>Session</h1>;
}
