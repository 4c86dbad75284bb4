/** The state of a session as a sign and a word. */

import type { Session } from "jackfield-client";
import type { JSX } from "solid-js";
import "./session-state.css";
import { shortLine } from "./visible-text";

const STATES: Record<string, { icon: string; text: string }> = {
  asks: { icon: "?", text: "needs you" },
  working: { icon: "◐", text: "working" },
  quiet: { icon: "◌", text: "quiet" },
  waiting: { icon: "◌", text: "waiting" },
  opening: { icon: "…", text: "opening" },
  starting: { icon: "…", text: "starting" },
  idle: { icon: "✓", text: "idle" },
  asleep: { icon: "☾", text: "asleep" },
  closed: { icon: "■", text: "closed" },
};

/** The word for a state. */
export const stateText = (state: string): string => STATES[state]?.text ?? state;

export function SessionState(props: { row: Session }): JSX.Element {
  return (
    <span class={`session-state state-${/^[a-z]+$/.test(props.row.state) ? props.row.state : "other"}`} title={shortLine(props.row.doing ?? "")}>
      <span class="session-state-icon" aria-hidden="true">
        {STATES[props.row.state]?.icon ?? "·"}
      </span>{" "}
      {stateText(props.row.state)}
    </span>
  );
}
