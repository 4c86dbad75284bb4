/** The difference of a file: unified, or with both sides next to each other. */

import { A } from "@solidjs/router";
import { createMemo, For, Show, type JSX } from "solid-js";
import { filePath } from "../../app/navigate";
import { formatNumberOf } from "../../ui/format";
import { shortLine, visibleLines } from "../../ui/visible-text";
import { countChanges, diffLines, type DiffRow, type LinePiece } from "../line-diff";
import type { FileDiff } from "../tool-call";
import { useTranscriptView } from "./view-state";

/** More rows are shown on request. */
const ROWS_MAX = 200;
const LINE_CHARS_MAX = 2000;

export function DiffView(props: { diff: FileDiff; stateKey: string }): JSX.Element {
  const view = useTranscriptView();
  const rows = createMemo(() => diffLines(props.diff.oldText, props.diff.newText));
  const counts = createMemo(() => countChanges(rows()));
  const allKey = (): string => `${props.stateKey}/all`;
  const shown = createMemo(() => (view.isOpen(allKey(), false) ? rows() : rows().slice(0, ROWS_MAX)));
  return (
    <div class="diff">
      <div class="diff-bar">
        <A class="diff-path" href={filePath(view.sessionId, props.diff.path)} title={`All changes of ${shortLine(props.diff.path, 1000)}`}>
          {shortLine(props.diff.path)}
        </A>
        <Show when={props.diff.isNew}>
          <span class="diff-new">new</span>
        </Show>
        <span class="diff-added">+{counts().added}</span>
        <span class="diff-removed">−{counts().removed}</span>
        <button
          type="button"
          class="quiet diff-layout"
          aria-pressed={view.diffLayout() === "split"}
          onClick={() => view.setDiffLayout(view.diffLayout() === "split" ? "unified" : "split")}
        >
          Side by side
        </button>
      </div>
      <div class="diff-scroll" tabindex="0" role="region" aria-label={`Changes of ${shortLine(props.diff.path)}`}>
        <Show when={view.diffLayout() === "split"} fallback={<UnifiedRows rows={shown()} />}>
          <SplitRows rows={shown()} />
        </Show>
      </div>
      <Show when={shown().length < rows().length}>
        <button type="button" class="quiet" onClick={() => view.setOpen(allKey(), true)}>
          Show all {rows().length.toLocaleString()} lines
        </button>
      </Show>
    </div>
  );
}

function Pieces(props: { pieces: readonly LinePiece[] }): JSX.Element {
  return (
    <For each={props.pieces}>
      {(it) => (
        <Show when={it.isChanged} fallback={visibleLines(it.text.slice(0, LINE_CHARS_MAX))}>
          <mark>{visibleLines(it.text.slice(0, LINE_CHARS_MAX))}</mark>
        </Show>
      )}
    </For>
  );
}

const describeSkipped = (count: number | undefined): string => (count === undefined ? "…" : formatNumberOf(count, "unchanged line"));

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

export function UnifiedRows(props: { rows: readonly DiffRow[] }): JSX.Element {
  return (
    <table class="diff-table">
      <tbody>
        <For each={props.rows}>
          {(row) =>
            row.kind === "skipped" ? (
              <tr class="diff-skipped">
                <td colspan="4">{describeSkipped(row.count)}</td>
              </tr>
            ) : (
              <tr class={`diff-${row.kind}-row`}>
                <td class="diff-number">{row.kind === "added" ? "" : row.oldLine}</td>
                <td class="diff-number">{row.kind === "removed" ? "" : row.newLine}</td>
                <td class="diff-sign">{SIGNS[row.kind]}</td>
                <td class="diff-text">
                  <Pieces pieces={row.pieces} />
                </td>
              </tr>
            )
          }
        </For>
      </tbody>
    </table>
  );
}

type ChangedRow = Exclude<DiffRow, { kind: "skipped" }>;
type SplitRow = { left: ChangedRow | undefined; right: ChangedRow | undefined } | { skipped: number | undefined };

/** Removed lines stand next to the added lines that replace them. */
function pairRows(rows: readonly DiffRow[]): SplitRow[] {
  const pairs: SplitRow[] = [];
  let removed: ChangedRow[] = [];
  let added: ChangedRow[] = [];
  const flush = (): void => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      pairs.push({ left: removed[index], right: added[index] });
    }
    [removed, added] = [[], []];
  };
  for (const row of rows) {
    if (row.kind === "removed") removed.push(row);
    else if (row.kind === "added") added.push(row);
    else {
      flush();
      pairs.push(row.kind === "skipped" ? { skipped: row.count } : { left: row, right: row });
    }
  }
  flush();
  return pairs;
}

export function SplitRows(props: { rows: readonly DiffRow[] }): JSX.Element {
  const side = (row: ChangedRow | undefined, isLeft: boolean): JSX.Element => (
    <>
      <td class="diff-number">{row && (isLeft ? "oldLine" in row && row.oldLine : "newLine" in row && row.newLine)}</td>
      <td class={`diff-text ${row ? `diff-${row.kind}-row` : "diff-empty"}`}>{row && <Pieces pieces={row.pieces} />}</td>
    </>
  );
  return (
    <table class="diff-table diff-split">
      <tbody>
        <For each={pairRows(props.rows)}>
          {(row) =>
            "skipped" in row ? (
              <tr class="diff-skipped">
                <td colspan="4">{describeSkipped(row.skipped)}</td>
              </tr>
            ) : (
              <tr>
                {side(row.left, true)}
                {side(row.right, false)}
              </tr>
            )
          }
        </For>
      </tbody>
    </table>
  );
}
