/** One agent: version, login, models, and its problems with their fixes. */

import { A } from "@solidjs/router";
import type { Agent } from "jackfield-client";
import { For, Show, type JSX } from "solid-js";
import { CodeText } from "../../ui/code-text";
import { formatNumberOf } from "../../ui/format";
import { visibleLine } from "../../ui/visible-text";
import { diagnosticsOf, isLoggedOut, modelsOf, type Diagnostic } from "./groups";

export function AgentCard(props: { agent: Agent }): JSX.Element {
  return (
    <li class="agent">
      <div class="agent-head">
        <h3>{props.agent.name}</h3>
        <span class="muted agent-id">{props.agent.id}</span>
        <Show when={props.agent.authState === "ok"}>
          <span class="agent-state success">logged in</span>
        </Show>
        <Show when={isLoggedOut(props.agent)}>
          <span class="agent-state warning">logged out</span>
        </Show>
        <Show when={props.agent.available}>
          <A class="agent-start" href={`/?new=${encodeURIComponent(props.agent.id)}`} aria-label={`Start ${props.agent.name}`}>
            Start
          </A>
        </Show>
      </div>
      <Show when={props.agent.version ?? props.agent.path}>
        <p class="muted agent-line">
          {visibleLine([props.agent.version, props.agent.path].filter(Boolean).join(" · "))}
        </p>
      </Show>
      <For each={diagnosticsOf(props.agent)}>{(it) => <DiagnosticText diagnostic={it} />}</For>
      <Show when={props.agent.available}>
        <Offers title="model" values={modelsOf(props.agent)} />
        <Offers title="mode" values={props.agent.modes.map((it) => it.label)} />
      </Show>
      <DocumentationLink url={props.agent.docsUrl} name={props.agent.name} />
    </li>
  );
}

function DiagnosticText(props: { diagnostic: Diagnostic }): JSX.Element {
  return (
    <div class="agent-problem">
      <p>
        <CodeText text={props.diagnostic.message} />
      </p>
      <Show when={props.diagnostic.fix}>
        {(fix) => (
          <p>
            <strong>Fix:</strong> <CodeText text={fix()} />
          </p>
        )}
      </Show>
    </div>
  );
}

function Offers(props: { title: string; values: string[] }): JSX.Element {
  return (
    <Show when={props.values.length > 0}>
      <details class="agent-offers">
        <summary>{formatNumberOf(props.values.length, props.title)}</summary>
        <ul>
          <For each={props.values}>{(value) => <li>{visibleLine(value)}</li>}</For>
        </ul>
      </details>
    </Show>
  );
}

function DocumentationLink(props: { url: string | null | undefined; name: string }): JSX.Element {
  const url = () => (props.url?.startsWith("https://") ? props.url : undefined);
  return (
    <Show when={url()}>
      {(it) => (
        <p class="agent-line">
          <a href={it()} target="_blank" rel="noopener noreferrer" aria-label={`Documentation of ${props.name}`}>
            Documentation
          </a>
        </p>
      )}
    </Show>
  );
}
