/** The header of a session: name, state, agent, sandbox, directory, cost, and its actions. */

import type { SessionRow } from "../../state/session-row";
import { Show, type JSX } from "solid-js";
import { formatCost } from "../../ui/format";
import { SessionMenu } from "../../ui/session-menu";
import { SessionState } from "../../ui/session-state";
import { TimeAgo } from "../../ui/time-ago";
import { shortLine } from "../../ui/visible-text";

/** The directory without its last part. */
const parentOf = (path: string): string => /^.*[/\\](?=[^/\\])/.exec(path)?.[0] ?? "";

export function SessionHeader(props: { sessionId: string; row: SessionRow | undefined }): JSX.Element {
  const title = (): string => shortLine(props.row?.name || props.row?.title || "", 200) || props.sessionId;
  return (
    <header class="session-header">
      <h1 title={title()}>{title()}</h1>
      <Show when={props.row}>
        {(row) => (
          <p class="session-facts">
            <SessionState row={row()} />
            <span>{shortLine(row().agent, 60)}</span>
            <Show when={row().sandbox}>{(profile) => <span title="The sandbox profile of the agent">sandbox {shortLine(profile(), 60)}</span>}</Show>
            <span class="session-directory" title={shortLine(row().cwd, 1000)}>
              <span class="wide-only">{shortLine(parentOf(row().cwd), 200)}</span>
              {shortLine(row().cwd.slice(parentOf(row().cwd).length), 200)}
            </span>
            <Show when={row().cost}>{(cost) => <span>{formatCost(cost())}</span>}</Show>
            <TimeAgo at={row().updatedAt} />
          </p>
        )}
      </Show>
      <SessionMenu sessionId={props.sessionId} />
    </header>
  );
}
