/** The page "Agents": those that can be started, and for the others the reason and the fix. */

import type { Agent } from "jackfield-client";
import { createSignal, For, Show, type JSX } from "solid-js";
import { api } from "../../api/client";
import { createReloading } from "../../state/reloading";
import { formatNumberOf } from "../../ui/format";
import { Loaded } from "../../ui/loaded";
import "../../ui/page.css";
import { AgentCard } from "./agent-card";
import "./agents.css";
import { filterAgents, groupAgents } from "./groups";

export default function AgentsPage(): JSX.Element {
  const [text, setText] = createSignal("");
  let isProbe = false;
  const [agents, reload] = createReloading(
    () => true,
    () => api.agents({ probe: isProbe }),
  );
  const probe = (): void => {
    isProbe = true;
    reload();
  };
  return (
    <div class="page agents">
      <div class="page-header">
        <h1>Agents</h1>
        <div class="agents-tools">
          <input
            type="search"
            aria-label="Filter agents"
            placeholder="Filter"
            value={text()}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="button" disabled={agents.loading} onClick={probe}>
            {agents.loading ? "Checking…" : "Check again"}
          </button>
        </div>
      </div>
      <Loaded resource={agents} onRetry={reload}>
        {(all) => <AgentList agents={filterAgents(all(), text())} />}
      </Loaded>
    </div>
  );
}

function AgentList(props: { agents: Agent[] }): JSX.Element {
  const groups = () => groupAgents(props.agents);
  return (
    <>
      <p class="visually-hidden" role="status">
        {formatNumberOf(props.agents.length, "agent")}
      </p>
      <Show when={props.agents.length > 0} fallback={<p class="muted">No agent matches this filter.</p>}>
        <AgentGroup title="Ready" agents={groups().ready} />
        <AgentGroup title="Needs attention" agents={groups().blocked} />
        <AgentGroup title="Not installed" agents={groups().missing} />
      </Show>
    </>
  );
}

function AgentGroup(props: { title: string; agents: Agent[] }): JSX.Element {
  return (
    <Show when={props.agents.length > 0}>
      <section aria-label={props.title}>
        <h2>
          {props.title} <span class="muted">{props.agents.length}</span>
        </h2>
        <ul class="agent-list">
          <For each={props.agents}>{(agent) => <AgentCard agent={agent} />}</For>
        </ul>
      </section>
    </Show>
  );
}
