/** The facts of a permission request: commands, paths, the directory, why no rule answered, and what "always" means. */

import type { Ask } from "jackfield-client";
import { For, Show, createMemo, type JSX } from "solid-js";
import { sessionRows } from "../../state/daemon";
import { focusWhileScrollable } from "../scroll-focus";
import { visibleLine, visibleLines } from "../visible-text";
import { hasPermanentOption, readCall } from "./ask-call";

export function AskFacts(props: { ask: Ask }): JSX.Element {
  const call = createMemo(() => readCall(props.ask));
  /** Where the command runs, if that is not the directory of the session, which the heading has. */
  const otherDirectory = (): string | undefined =>
    call().cwd === sessionRows[props.ask.sessionId]?.cwd ? undefined : call().cwd;
  return (
    <>
      <For each={call().commands}>
        {(command) => (
          <pre class="ask-command" ref={focusWhileScrollable} role="group" aria-label="Command">
            {visibleLines(command)}
          </pre>
        )}
      </For>
      <dl class="ask-facts" ref={focusWhileScrollable}>
        <FactList name="MCP tool" values={call().mcp} />
        <FactList name={call().paths.length === 1 ? "Path" : "Paths"} values={call().paths} />
        <FactList name="Other text" values={call().unknown} />
        <FactList name="Tool" values={optional(call().tool)} />
        <FactList name="Directory" values={optional(otherDirectory())} />
        <FactList name="Further directories" values={call().folders} />
        <Sentence name="Why you are asked" text={call().why} />
        <Show when={hasPermanentOption(props.ask)}>
          <Sentence name="What “always” means" text={call().always} />
        </Show>
      </dl>
      <Show when={call().isCut}>
        <p class="ask-warning">The request is so large that the daemon checked only a part of it.</p>
      </Show>
    </>
  );
}

const optional = (it: string | undefined): string[] => (it === undefined ? [] : [it]);

function FactList(props: { name: string; values: string[] }): JSX.Element {
  return (
    <Show when={props.values.length > 0}>
      <dt>{props.name}</dt>
      <dd>
        <For each={props.values}>{(value) => <code>{visibleLine(value)}</code>}</For>
      </dd>
    </Show>
  );
}

function Sentence(props: { name: string; text: string | undefined }): JSX.Element {
  return (
    <Show when={props.text}>
      {(text) => (
        <>
          <dt>{props.name}</dt>
          <dd>{visibleLine(text())}</dd>
        </>
      )}
    </Show>
  );
}
