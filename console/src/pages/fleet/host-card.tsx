/** One host: state, load, labels, and its sessions with links. */

import { A } from "@solidjs/router";
import { createMemo, For, Show, type JSX } from "solid-js";
import type { Host } from "../../api/hosts";
import { sessionPath } from "../../app/navigate";
import { sessionRows } from "../../state/daemon";
import type { SessionRow } from "../../state/session-row";
import { formatNumberOf } from "../../ui/format";
import { shortLine, visibleLine } from "../../ui/visible-text";

/** More sessions are not listed here; the list of sessions can be filtered. */
const SESSIONS_SHOWN_MAX = 50;
const STATE_CLASSES: Record<string, string> = { online: "success", draining: "warning" };

export function HostCard(props: { host: Host; canDrain: boolean; onDrain(): void; onResume(): void }): JSX.Element {
  return (
    <li class="host">
      <div class="host-head">
        <h2>{visibleLine(props.host.name)}</h2>
        <span class={`host-state ${STATE_CLASSES[props.host.state] ?? ""}`}>{props.host.state}</span>
        <Show when={props.canDrain}>
          <Show
            when={props.host.state === "draining"}
            fallback={
              <button type="button" class="host-drain" aria-label={`Drain ${props.host.name}`} onClick={() => props.onDrain()}>
                Drain
              </button>
            }
          >
            <button type="button" class="host-drain" aria-label={`Resume ${props.host.name}`} onClick={() => props.onResume()}>
              Resume
            </button>
          </Show>
        </Show>
      </div>
      <p class="muted host-line">
        {formatNumberOf(props.host.sessions, "session")}, {formatNumberOf(props.host.running, "running agent")}
        <Show when={props.host.free !== null}>, room for {props.host.free} more</Show> · jackfield {visibleLine(props.host.version)}
      </p>
      <Show when={Object.keys(props.host.labels).length > 0}>
        <ul class="host-labels" aria-label="Labels">
          <For each={Object.entries(props.host.labels)}>
            {([key, value]) => (
              <li>
                {visibleLine(`${key}=${value}`)}
              </li>
            )}
          </For>
        </ul>
      </Show>
      <Show when={props.host.agents.length > 0}>
        <p class="muted host-line">Agents: {props.host.agents.join(", ")}</p>
      </Show>
      <HostSessions name={props.host.name} />
    </li>
  );
}

function HostSessions(props: { name: string }): JSX.Element {
  const sessions = createMemo(() =>
    Object.values<SessionRow>(sessionRows)
      .filter((it) => it.host === props.name)
      .toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt)),
  );
  return (
    <Show when={sessions().length > 0}>
      <details class="host-sessions">
        <summary>Show {formatNumberOf(sessions().length, "session")}</summary>
        <ul>
          <For each={sessions().slice(0, SESSIONS_SHOWN_MAX)}>
            {(it) => (
              <li>
                <A href={sessionPath(it.sessionId)}>{shortLine(it.name || it.title || it.sessionId)}</A>{" "}
                <span class="muted">
                  {it.agent}, {it.state}
                </span>
              </li>
            )}
          </For>
        </ul>
        <Show when={sessions().length > SESSIONS_SHOWN_MAX}>
          <p class="muted">and {formatNumberOf(sessions().length - SESSIONS_SHOWN_MAX, "other")}</p>
        </Show>
      </details>
    </Show>
  );
}
