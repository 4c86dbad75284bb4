/** The page "Usage". */

import type { JSX } from "solid-js";

export default function UsagePage(): JSX.Element {
  return <h1>Usage</h1>;
}
