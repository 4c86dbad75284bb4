/** The page "Fleet". */

import type { JSX } from "solid-js";

export default function FleetPage(): JSX.Element {
  return <h1>Fleet</h1>;
}
