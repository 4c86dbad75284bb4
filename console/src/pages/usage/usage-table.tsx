/** Usage by day, agent, model or project as a table. */

import { For, Show, type JSX } from "solid-js";
import type { Grouping, UsageReport, UsageSum } from "../../api/usage";
import { formatCosts, formatCount } from "../../ui/format";
import { visibleLine } from "../../ui/visible-text";
import { sortGroups } from "./series";

export const GROUPING_LABELS: Record<Grouping, string> = { day: "Day (UTC)", agent: "Agent", model: "Model", project: "Project" };

const count = (value: number | null | undefined): string => (value == null ? "–" : formatCount(value));

export function UsageTable(props: { report: UsageReport; by: Grouping }): JSX.Element {
  const groups = () => sortGroups(props.report.groups, props.by);
  return (
    <div class="table-scroll" tabindex="0" role="region" aria-label={`Usage by ${props.by}`}>
      <table class="data-table usage-table">
        <thead>
          <tr>
            <th scope="col">{GROUPING_LABELS[props.by]}</th>
            <th scope="col" class="number">Sessions</th>
            <th scope="col" class="number">Turns</th>
            <th scope="col" class="number">Input</th>
            <th scope="col" class="number">Cached</th>
            <th scope="col" class="number">Output</th>
            <th scope="col" class="number">Total</th>
            <th scope="col" class="number">Cost</th>
          </tr>
        </thead>
        <tbody>
          <For each={groups()}>{(group) => <UsageRow name={group.name} sum={group} />}</For>
        </tbody>
        <Show when={groups().length > 1}>
          <tfoot>
            <UsageRow name="Sum" sum={props.report.sum} />
          </tfoot>
        </Show>
      </table>
    </div>
  );
}

function UsageRow(props: { name: string; sum: UsageSum }): JSX.Element {
  const turns = () =>
    props.sum.known < props.sum.turns ? `${count(props.sum.known)} of ${count(props.sum.turns)}` : count(props.sum.turns);
  return (
    <tr>
      <th scope="row">{visibleLine(props.name)}</th>
      <td class="number">{count(props.sum.sessions)}</td>
      <td class="number">{turns()}</td>
      <td class="number">{count(props.sum.tokens.input)}</td>
      <td class="number">{count(props.sum.tokens.cachedRead)}</td>
      <td class="number">{count(props.sum.tokens.output)}</td>
      <td class="number">{count(props.sum.tokens.total)}</td>
      <td class="number">{formatCosts(props.sum.costs) || "–"}</td>
    </tr>
  );
}
