/** A unified diff as rows: unified, or with both sides next to each other. */

import { createMemo, createSignal, Show, type JSX } from "solid-js";
import { parseUnifiedDiff } from "../../../transcript/unified-diff";
import "../../../transcript/view/content.css";
import { SplitRows, UnifiedRows } from "../../../transcript/view/diff-view";
import type { DiffLayout } from "../../../transcript/view/view-state";
import { formatNumberOf } from "../../../ui/format";

/** More rows are shown on request. */
const ROWS_MAX = 400;

export function UnifiedDiffView(props: { text: string; layout: DiffLayout; label: string }): JSX.Element {
  const [isComplete, setComplete] = createSignal(false);
  const rows = createMemo(() => parseUnifiedDiff(props.text));
  const shown = () => (isComplete() ? rows() : rows().slice(0, ROWS_MAX));
  return (
    <Show when={rows().length > 0} fallback={<p class="muted">There is no difference in text.</p>}>
      <div class="diff-scroll" tabindex="0" role="region" aria-label={`Changes of ${props.label}`}>
        <Show when={props.layout === "split"} fallback={<UnifiedRows rows={shown()} />}>
          <SplitRows rows={shown()} />
        </Show>
      </div>
      <Show when={shown().length < rows().length}>
        <button type="button" class="quiet" onClick={() => setComplete(true)}>
          Show {formatNumberOf(rows().length - shown().length, "more line")}
        </button>
      </Show>
    </Show>
  );
}
