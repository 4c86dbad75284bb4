/** A line above a page that says how many requests wait for the user, and leads to the inbox. */

import { A } from "@solidjs/router";
import { Show, type JSX } from "solid-js";
import { openAsks } from "../state/daemon";
import { formatNumberOf } from "./format";
import "./page.css";

export function WaitingBanner(): JSX.Element {
  return (
    <div role="status">
      <Show when={openAsks.length > 0}>
        <p class="notice warning">
          {formatNumberOf(openAsks.length, "request waits", "requests wait")} for your answer. <A href="/inbox">Open the inbox</A> <kbd class="wide-only">i</kbd>
        </p>
      </Show>
    </div>
  );
}
