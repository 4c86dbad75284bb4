/** The text and the diffs of a permission request, from the log of its session. */

import type { Ask } from "jackfield-client";
import { For, Show, createSignal, onMount, type JSX } from "solid-js";
import type { ToolItem } from "../../transcript/item";
import { toolDiffs, toolOutput } from "../../transcript/tool-call";
import "../../transcript/view/content.css";
import { DiffView } from "../../transcript/view/diff-view";
import { TranscriptViewProvider, createTranscriptView } from "../../transcript/view/view-state";
import { focusWhileScrollable } from "../scroll-focus";
import { visibleLines } from "../visible-text";
import { loadToolCall } from "./tool-call-details";

export function AskDetails(props: { ask: Ask }): JSX.Element {
  const [call, setCall] = createSignal<ToolItem>();
  onMount(() => {
    // The request can be answered without them, and the log is also in the session.
    loadToolCall(props.ask).then(setCall, () => {});
  });
  return (
    <Show when={call()}>
      {(it) => (
        <TranscriptViewProvider value={createTranscriptView(props.ask.sessionId, () => undefined)}>
          <Show when={toolOutput(it())}>
            {(text) => (
              <pre class="ask-command" ref={focusWhileScrollable} role="group" aria-label="Text of the tool call">
                {visibleLines(text())}
              </pre>
            )}
          </Show>
          <For each={toolDiffs(it())}>{(diff, index) => <DiffView diff={diff} stateKey={`${index()}`} />}</For>
        </TranscriptViewProvider>
      )}
    </Show>
  );
}
