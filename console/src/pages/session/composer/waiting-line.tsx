/** A line that says that the agent waits for an answer, for a reader who does not see the request in the transcript. */

import type { Ask } from "jackfield-client";
import { Show, type JSX } from "solid-js";
import { navigateTo } from "../../../app/navigate";
import { openAsks } from "../../../state/daemon";
import { askKey } from "../../../ui/ask-card/answer";
import { describeKind } from "../../../ui/ask-card/ask-call";
import { visibleLine } from "../../../ui/visible-text";

const WHAT_CHARS_MAX = 120;

export function WaitingLine(props: { sessionId: string }): JSX.Element {
  const asks = (): Ask[] => openAsks.filter((it) => it.sessionId === props.sessionId);
  const describe = (ask: Ask): string => `${describeKind(ask)}: ${visibleLine((ask.what ?? "").slice(0, WHAT_CHARS_MAX))}`;
  return (
    <div role="status">
      <Show when={asks()[0]}>
        {(ask) => (
          <p class="waiting-line">
            <span class="queue-text">
              The agent waits for your answer · {describe(ask())}
              <Show when={asks().length > 1}> · and {asks().length - 1} more</Show>
            </span>
            <button type="button" onClick={() => showAsk(ask())}>
              Answer
            </button>
          </p>
        )}
      </Show>
    </div>
  );
}

/** Focuses the request in the transcript; one that is not drawn is answered in the inbox. */
function showAsk(ask: Ask): void {
  const card = document.querySelector<HTMLElement>(`[data-ask="${CSS.escape(askKey(ask))}"]`);
  if (card === null) return navigateTo("/inbox");
  card.focus();
  card.scrollIntoView({ block: "center" });
}
