/** The page "Devices". */

import type { JSX } from "solid-js";

export default function DevicesPage(): JSX.Element {
  return <h1>Devices</h1>;
}
