/** The page "Agents". */

import type { JSX } from "solid-js";

export default function AgentsPage(): JSX.Element {
  return <h1>Agents</h1>;
}
