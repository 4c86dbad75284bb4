/** The frame of every page: navigation, the state of the connection, and the page itself. */

import { A, type RouteSectionProps } from "@solidjs/router";
import { Show, Suspense, createEffect, type JSX } from "solid-js";
import { openAsks } from "../state/daemon";
import { me } from "../state/me";
import { ConnectionLine } from "./connection-line";
import "./frame.css";
import { ThemeSwitch } from "./theme-switch";
import { NavIcon, type NavIconName } from "./nav-icons";

export function Frame(props: RouteSectionProps): JSX.Element {
  // The router removes the slash at the end, without which the address is outside of the scope of the service worker.
  createEffect(() => {
    if (props.location.pathname !== "/console") return;
    // The router changes the address after its own location.
    setTimeout(() => {
      const { pathname, search, hash } = window.location;
      if (pathname === "/console") history.replaceState(history.state, "", `/console/${search}${hash}`);
    });
  });
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
          <NavLink href="/" icon="sessions" label="Sessions" />
          <NavLink href="/inbox" icon="inbox" label="Inbox">
            <Show when={openAsks.length > 0}>
              <span class="badge" role="img" aria-label={`${openAsks.length} open requests`}>
                {openAsks.length}
              </span>
            </Show>
          </NavLink>
          <NavLink href="/usage" icon="usage" label="Usage" />
          <NavLink href="/agents" icon="agents" label="Agents" />
          <Show when={me()?.fleet}>
            <NavLink href="/fleet" icon="fleet" label="Fleet" />
          </Show>
          <NavLink href="/devices" icon="devices" label="Devices" />
        </nav>
        <ThemeSwitch />
      </header>
      <ConnectionLine />
      <main id="main" class="frame-main" tabindex="-1">
        <Suspense fallback={<p class="loading">Loading…</p>}>{props.children}</Suspense>
      </main>
    </div>
  );
}

function NavLink(props: { href: string; icon: NavIconName; label: string; children?: JSX.Element }): JSX.Element {
  return (
    <A href={props.href} end={props.href === "/"}>
      <NavIcon name={props.icon} />
      <span>{props.label}</span>
      {props.children}
    </A>
  );
}
