/** The dialog for a new session: agent, directory, model, mode and sandbox, MCP servers, first prompt. */

import type { Agent } from "jackfield-client";
import { For, Show, createSignal, onCleanup, onMount, type JSX } from "solid-js";
import { api, errorText } from "../../api/client";
import { navigateTo, sessionPath } from "../../app/navigate";
import { sessionRows } from "../../state/daemon";
import { openDialog } from "../open-dialog";
import { visibleLine } from "../visible-text";
import { AgentField } from "./agent-field";
import { DirectoryField } from "./directory-field";
import { toMcpServers } from "./mcp-servers";
import "./new-session.css";
import { recentDirectories } from "./recent-directories";
import { startSession, type NewSession } from "./start";

export interface NewSessionDefaults {
  agentId?: string;
  cwd?: string;
}

let isOpen = false;

/** Opens the dialog, and goes to the session when it is open. */
export async function openNewSession(defaults: NewSessionDefaults = {}): Promise<void> {
  if (isOpen) return;
  isOpen = true;
  const sessionId = await openDialog<string>("New session", (close) => <NewSessionForm defaults={defaults} close={close} />);
  isOpen = false;
  if (sessionId !== undefined) navigateTo(sessionPath(sessionId));
}

function NewSessionForm(props: { defaults: NewSessionDefaults; close(sessionId?: string): void }): JSX.Element {
  const recent = recentDirectories(Object.values(sessionRows));
  const [agents, setAgents] = createSignal<Agent[]>([]);
  const [configured, setConfigured] = createSignal<string[]>([]);
  const [profiles, setProfiles] = createSignal<string[]>([]);
  const [agentId, setAgentId] = createSignal(props.defaults.agentId ?? "");
  const [cwd, setCwd] = createSignal(props.defaults.cwd ?? recent[0] ?? "");
  const [servers, setServers] = createSignal<string[]>([]);
  const [progress, setProgress] = createSignal("");
  const [problem, setProblem] = createSignal("");
  const agent = (): Agent | undefined => agents().find((it) => it.id === agentId());
  let start = new AbortController();
  let form!: HTMLFormElement;

  onMount(() => {
    // Without these names, others can still be written, and sessions have the configured profile.
    void api.mcpServers().then(setConfigured, () => {});
    void api.sandboxProfiles().then(setProfiles, () => {});
    void loadAgents(setAgents, setProblem).then(() => setAgentId((it) => it || defaultAgent(agents())));
    onCleanup(() => start.abort());
  });

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (progress() !== "") return;
    const data = new FormData(form);
    const field = (name: string): string => String(data.get(name) ?? "");
    const mcp = toMcpServers(servers(), field("mcp"));
    if (mcp.problem !== undefined) return void setProblem(mcp.problem);
    const session: NewSession = {
      agentId: agentId(),
      cwd: cwd().trim(),
      ...(field("model") !== "" && { model: field("model") }),
      ...(field("mode") !== "" && { mode: field("mode") }),
      ...(field("sandbox") !== "" && { sandbox: field("sandbox") }),
      ...(mcp.servers && { mcpServers: mcp.servers }),
      ...(field("message").trim() !== "" && { message: field("message") }),
    };
    setProblem("");
    start = new AbortController();
    try {
      props.close(await startSession(session, setProgress, start.signal));
    } catch (error) {
      setProblem(start.signal.aborted ? "The start was canceled." : errorText(error));
      setProgress("");
    }
  };

  return (
    <form class="dialog-form new-session" ref={form} onSubmit={(event) => void submit(event)}>
      <AgentField agents={agents()} value={agentId()} onChange={setAgentId} />
      <DirectoryField value={cwd()} recent={recent} onChange={setCwd} />
      <label>
        First prompt
        <textarea name="message" rows="3" placeholder="Optional: the session also opens without one" />
      </label>
      <details>
        <summary>Model, mode, sandbox and MCP servers</summary>
        <div class="dialog-form">
          <ChoiceField label="Model" name="model" unset="As the agent is configured" choices={agent()?.models ?? []} />
          <ChoiceField label="Mode" name="mode" unset="As the agent is configured" choices={agent()?.modes ?? []} />
          <ChoiceField label="Sandbox" name="sandbox" unset="As the project or the daemon is configured" choices={profiles().map(profileChoice)} />
          <McpField names={configured()} chosen={servers()} onChange={setServers} />
        </div>
      </details>
      <p class="dialog-text" role="status">
        {progress()}
      </p>
      <p class="dialog-problem" role="alert">
        {problem()}
      </p>
      <div class="dialog-buttons">
        <button type="button" onClick={() => (progress() === "" ? props.close() : start.abort())}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={progress() !== "" || agent()?.available !== true || cwd().trim() === ""}>
          Start
        </button>
      </div>
    </form>
  );
}

/** What the built-in profiles permit. A user may have changed them, or added others. */
const PROFILE_NOTES: Record<string, string> = { open: "no limits", "read-only": "the project cannot be changed", workspace: "only the project can be changed" };

const profileChoice = (name: string): Choice => ({ id: name, label: PROFILE_NOTES[name] === undefined ? name : `${name}: ${PROFILE_NOTES[name]}` });

interface Choice {
  id: string;
  label: string;
}

/** A choice of models, modes or profiles; without any there is no field. `unset` describes the empty choice. */
function ChoiceField(props: { label: string; name: string; unset: string; choices: Choice[] }): JSX.Element {
  return (
    <Show when={props.choices.length > 0}>
      <label>
        {props.label}
        <select name={props.name} aria-label={props.label}>
          <option value="">{props.unset}</option>
          <For each={props.choices.filter((it) => it.id !== "default")}>{(it) => <option value={it.id}>{visibleLine(it.label)}</option>}</For>
        </select>
      </label>
    </Show>
  );
}

function McpField(props: { names: string[]; chosen: string[]; onChange(names: string[]): void }): JSX.Element {
  return (
    <>
      <Show when={props.names.length > 0}>
        <fieldset class="mcp-servers">
          <legend>Configured MCP servers</legend>
          <For each={props.names}>
            {(name) => (
              <label class="mcp-server">
                <input
                  type="checkbox"
                  checked={props.chosen.includes(name)}
                  onChange={(event) => {
                    const others = props.chosen.filter((it) => it !== name);
                    props.onChange(event.currentTarget.checked ? [...others, name] : others);
                  }}
                />
                {visibleLine(name)}
              </label>
            )}
          </For>
        </fieldset>
      </Show>
      <label>
        Other MCP servers, as in .mcp.json
        <textarea name="mcp" rows="3" spellcheck={false} class="mcp-json" placeholder='{"mcpServers": {"files": {"command": "mcp-files"}}}' />
      </label>
    </>
  );
}

/** The agent of the latest session, or the first one that can be used. */
function defaultAgent(agents: Agent[]): string {
  const latest = Object.values(sessionRows).sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))[0]?.agent;
  const ready = agents.filter((it) => it.available);
  return (ready.find((it) => it.id === latest) ?? ready[0] ?? agents[0])?.id ?? "";
}

async function loadAgents(setAgents: (it: Agent[]) => void, setProblem: (it: string) => void): Promise<void> {
  try {
    setAgents(await api.agents());
  } catch (error) {
    setProblem(errorText(error));
  }
}
