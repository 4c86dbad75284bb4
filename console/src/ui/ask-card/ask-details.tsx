/** The text and the diffs of a permission request, from the log of its session. */

import type { Ask } from "jackfield-client";
import { For, createSignal, onMount, type JSX } from "solid-js";
import { focusWhileScrollable } from "../scroll-focus";
import { visibleLine, visibleLines } from "../visible-text";
import { changedLines } from "./changed-lines";
import { loadToolCallDetails, type FileDiff, type ToolCallDetails } from "./tool-call-details";

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

export function AskDetails(props: { ask: Ask }): JSX.Element {
  const [details, setDetails] = createSignal<ToolCallDetails>({ diffs: [], texts: [] });
  onMount(() => {
    // The request can be answered without them, and the log is also in the session.
    loadToolCallDetails(props.ask).then(setDetails, () => {});
  });
  return (
    <>
      <For each={details().texts}>
        {(text) => (
          <pre class="ask-command" ref={focusWhileScrollable} role="group" aria-label="Text of the tool call">
            {visibleLines(text)}
          </pre>
        )}
      </For>
      <For each={details().diffs}>{(diff) => <Diff diff={diff} />}</For>
    </>
  );
}

function Diff(props: { diff: FileDiff }): JSX.Element {
  return (
    <figure class="ask-diff">
      <figcaption>
        <code>{visibleLine(props.diff.path)}</code>
      </figcaption>
      <pre ref={focusWhileScrollable} role="group" aria-label="Change">
        <For each={changedLines(props.diff.oldText, props.diff.newText)}>
          {(line) => <span class={`ask-line is-${line.kind}`}>{`${SIGNS[line.kind]} ${visibleLine(line.text)}\n`}</span>}
        </For>
      </pre>
    </figure>
  );
}
