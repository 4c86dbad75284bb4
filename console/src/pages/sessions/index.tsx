/** The page "Sessions". */

import type { JSX } from "solid-js";

export default function SessionsPage(): JSX.Element {
  return <h1>Sessions</h1>;
}
