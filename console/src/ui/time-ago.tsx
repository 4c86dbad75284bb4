/** A point in time by its age; its date is the tooltip. */

import type { JSX } from "solid-js";
import { now } from "./clock";
import { formatAgo, formatDateTime } from "./format";

/** `at` is an RFC 3339 text or Unix milliseconds. */
export function TimeAgo(props: { at: string | number }): JSX.Element {
  const ms = () => new Date(props.at).getTime();
  return (
    <time datetime={new Date(props.at).toISOString()} title={formatDateTime(ms())}>
      {formatAgo(ms(), now())}
    </time>
  );
}
