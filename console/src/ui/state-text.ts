/** The states of a session as signs and words. */

export const STATES: Record<string, { icon: string; text: string }> = {
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
