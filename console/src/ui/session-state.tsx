/** The state of a session as a sign and a word. */

import type { Session } from "jackfield-client";
import { Show, type JSX } from "solid-js";
import { now } from "./clock";
import { formatAge, formatDateTime } from "./format";
import "./session-state.css";
import { STATES, stateText } from "./state-text";
import { shortLine } from "./visible-text";

export function SessionState(props: { row: Session }): JSX.Element {
  return (
    <span class={`session-state state-${/^[a-z]+$/.test(props.row.state) ? props.row.state : "other"}`} title={shortLine(props.row.doing ?? "")}>
      <span class="session-state-icon" aria-hidden="true">
        {STATES[props.row.state]?.icon ?? "·"}
      </span>{" "}
      {stateText(props.row.state)}
      <Show when={props.row.asks > 0 && hasWaited(props.row.waitingSince) && props.row.waitingSince}>{(since) => <WaitingTime since={since()} />}</Show>
    </span>
  );
}

/** The first minute is not worth a word. */
const hasWaited = (since: string | null | undefined): boolean => since != null && now() - new Date(since).getTime() >= 60_000;

/** For how long a request has been open. */
function WaitingTime(props: { since: string }): JSX.Element {
  const at = () => new Date(props.since).getTime();
  return (
    <time class="session-state-since" datetime={props.since} title={`Waits for you since ${formatDateTime(at())}`}>
      {" "}
      {formatAge(at(), now())}
    </time>
  );
}
