/** The frame of every page: navigation, the state of the connection, and the page itself. */

import { A, type RouteSectionProps } from "@solidjs/router";
import { Show, Suspense, type JSX } from "solid-js";
import { openAsks } from "../state/daemon";
import { ConnectionLine } from "./connection-line";
import "./frame.css";

export function Frame(props: RouteSectionProps): JSX.Element {
  return (
    <div class="frame">
      <a class="skip-link" href="#main">
        Skip to content
      </a>
      <header class="frame-header">
        <A href="/" class="frame-brand" end>
          Jackfield
        </A>
        <nav class="frame-nav" aria-label="Pages">
          <A href="/" end>
            Sessions
          </A>
          <A href="/inbox">
            Inbox
            <Show when={openAsks.length > 0}>
              <span class="badge" aria-label={`${openAsks.length} open requests`}>
                {openAsks.length}
              </span>
            </Show>
          </A>
          <A href="/usage">Usage</A>
          <A href="/agents">Agents</A>
          <A href="/devices">Devices</A>
        </nav>
      </header>
      <ConnectionLine />
      <main id="main" class="frame-main" tabindex="-1">
        <Suspense fallback={<p class="loading">Loading…</p>}>{props.children}</Suspense>
      </main>
    </div>
  );
}
