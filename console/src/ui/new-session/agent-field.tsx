/** The agent of a new session: installed ones first, and for the others the reason and the fix. */

import type { Agent } from "jackfield-client";
import { For, Show, type JSX } from "solid-js";
import { visibleLine } from "../visible-text";

interface AgentFieldProps {
  agents: Agent[];
  value: string;
  onChange(agentId: string): void;
}

interface Diagnostic {
  message?: string;
  fix?: string;
}

export function AgentField(props: AgentFieldProps): JSX.Element {
  const chosen = (): Agent | undefined => props.agents.find((it) => it.id === props.value);
  return (
    <>
      <label>
        Agent
        <select aria-label="Agent" autofocus onChange={(event) => props.onChange(event.currentTarget.value)}>
          <AgentGroup label="Ready" agents={props.agents.filter((it) => it.available)} value={props.value} />
          <AgentGroup label="Cannot be used yet" agents={props.agents.filter((it) => !it.available)} value={props.value} />
        </select>
      </label>
      <Show when={chosen()}>{(agent) => <AgentProblems agent={agent()} />}</Show>
    </>
  );
}

function AgentGroup(props: { label: string; agents: Agent[]; value: string }): JSX.Element {
  return (
    <Show when={props.agents.length > 0}>
      <optgroup label={props.label}>
        <For each={props.agents}>
          {(agent) => (
            <option value={agent.id} selected={agent.id === props.value}>
              {visibleLine(agent.name)}
            </option>
          )}
        </For>
      </optgroup>
    </Show>
  );
}

/** Why the agent cannot be used, or what is known to be wrong with it. */
function AgentProblems(props: { agent: Agent }): JSX.Element {
  const diagnostics = (): Diagnostic[] => props.agent.diagnostics as Diagnostic[];
  const isUnexplained = (): boolean => !props.agent.available && diagnostics().length === 0;
  return (
    <Show when={diagnostics().length > 0 || isUnexplained()}>
      <div class="agent-problems" classList={{ "is-blocking": !props.agent.available }}>
        <For each={diagnostics()}>
          {(it) => (
            <p>
              {visibleLine(it.message ?? "")}
              <Show when={it.fix}>{(fix) => <code>{visibleLine(fix())}</code>}</Show>
            </p>
          )}
        </For>
        <Show when={isUnexplained()}>
          <p>
            It is not installed.
            <Show when={props.agent.installHint}>{(hint) => <code>{visibleLine(hint())}</code>}</Show>
          </p>
        </Show>
      </div>
    </Show>
  );
}
