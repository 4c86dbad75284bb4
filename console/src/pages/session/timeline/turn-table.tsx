/** One turn as a table: the same spans as in the waterfall, as text. */

import { A } from "@solidjs/router";
import { For, type JSX } from "solid-js";
import type { TimelineTurn } from "../../../api/timeline";
import { sessionPath } from "../../../app/navigate";
import { formatDuration } from "../../../ui/format";
import { visibleLine } from "../../../ui/visible-text";
import { KIND_LABELS } from "./spans";
import { TurnHeading } from "./turn-heading";

export function TurnTable(props: { sessionId: string; turn: TimelineTurn }): JSX.Element {
  return (
    <section class="turn" aria-label={`Turn ${props.turn.turn}`}>
      <TurnHeading turn={props.turn} />
      <div class="table-scroll" tabindex="0" role="region" aria-label={`Spans of turn ${props.turn.turn}`}>
        <table class="data-table">
          <thead>
            <tr>
              <th scope="col" class="number">Start</th>
              <th scope="col" class="number">Duration</th>
              <th scope="col">Kind</th>
              <th scope="col">Title</th>
              <th scope="col" class="number">Event</th>
            </tr>
          </thead>
          <tbody>
            <For each={props.turn.spans}>
              {(span) => (
                <tr>
                  <td class="number">{span.startMs < 0 ? `−${formatDuration(-span.startMs)}` : formatDuration(span.startMs)}</td>
                  <td class="number">{formatDuration(span.durationMs)}</td>
                  <td>{KIND_LABELS[span.kind]}</td>
                  <td class="span-cell">{visibleLine(span.title ?? "")}</td>
                  <td class="number">
                    <A href={`${sessionPath(props.sessionId)}?event=${span.seq}`}>{span.seq}</A>
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  );
}
