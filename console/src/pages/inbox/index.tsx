/** The page "Inbox". */

import type { JSX } from "solid-js";

export default function InboxPage(): JSX.Element {
  return <h1>Inbox</h1>;
}
