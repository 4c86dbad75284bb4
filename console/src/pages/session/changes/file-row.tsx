/** One changed file: its path and number of lines; opened, its differences. */

import { A } from "@solidjs/router";
import { createResource, For, Show, type JSX } from "solid-js";
import { readGitDiff, type ChangedFile, type FileStatus, type TurnFile } from "../../../api/changes";
import { filePath, sessionPath } from "../../../app/navigate";
import type { DiffLayout } from "../../../transcript/view/view-state";
import { formatCount } from "../../../ui/format";
import { Loaded } from "../../../ui/loaded";
import { visibleLine } from "../../../ui/visible-text";
import { shortPath } from "./merge";
import { UnifiedDiffView } from "./unified-diff-view";

const STATUS_LETTERS: Record<FileStatus, string> = { added: "A", modified: "M", deleted: "D" };

/** The files whose differences are shown; kept by the page, whose rows are made again with each load. */
export interface OpenFiles {
  has(key: string): boolean;
  toggle(key: string): void;
}

interface FileRowProps {
  open: OpenFiles;
  file: ChangedFile;
  /** The changes of the file in each turn. */
  turns: { turn: number; file: TurnFile }[];
  cwd: string | undefined;
  mode: DiffLayout;
  sessionId: string;
}

/** A file that tool calls have changed. */
export function FileRow(props: FileRowProps): JSX.Element {
  return (
    <Disclosure file={props.file} path={visibleLine(shortPath(props.file.path, props.cwd))} open={props.open} sessionId={props.sessionId}>
      <TurnDiffs path={props.file.path} turns={props.turns} mode={props.mode} sessionId={props.sessionId} />
    </Disclosure>
  );
}

interface TurnDiffsProps extends Pick<FileRowProps, "turns" | "mode" | "sessionId"> {
  path: string;
}

/** The differences of a file in each turn, with links to the tool calls. */
export function TurnDiffs(props: TurnDiffsProps): JSX.Element {
  return (
    <For each={props.turns}>
      {({ turn, file }) => (
        <>
          <p class="file-origin muted">
            Turn {turn}:{" "}
            <For each={file.seqs}>
              {(seq) => <A href={`${sessionPath(props.sessionId)}?event=${seq}`}>event {seq}</A>}
            </For>
          </p>
          <Show when={file.diff} fallback={<p class="muted">The difference was not reported or is too long.</p>}>
            {(diff) => <UnifiedDiffView text={diff()} layout={props.mode} label={`${visibleLine(props.path)}, turn ${turn}`} />}
          </Show>
        </>
      )}
    </For>
  );
}

/** A file of the working tree; its difference is requested when the row is opened. */
export function GitFileRow(props: Pick<FileRowProps, "file" | "mode" | "open" | "sessionId">): JSX.Element {
  return (
    <Disclosure file={props.file} path={visibleLine(props.file.path)} open={props.open} sessionId={props.sessionId}>
      <GitDiff readDiff={() => readGitDiff(props.sessionId, props.file.path)} mode={props.mode} label={visibleLine(props.file.path)} />
    </Disclosure>
  );
}

export function GitDiff(props: { readDiff(): Promise<string>; mode: DiffLayout; label: string }): JSX.Element {
  const [diff, { refetch }] = createResource(() => props.readDiff());
  return (
    <Loaded resource={diff} onRetry={() => void refetch()}>
      {(text) => <UnifiedDiffView text={text()} layout={props.mode} label={props.label} />}
    </Loaded>
  );
}

interface DisclosureProps extends Pick<FileRowProps, "file" | "open" | "sessionId"> {
  path: string;
  children: JSX.Element;
}

function Disclosure(props: DisclosureProps): JSX.Element {
  const isOpen = () => props.open.has(props.file.path);
  return (
    <li class="file">
      <button type="button" class="file-head" aria-expanded={isOpen()} onClick={() => props.open.toggle(props.file.path)}>
        <span class="file-status" data-status={props.file.status} title={props.file.status}>
          <span aria-hidden="true">{STATUS_LETTERS[props.file.status]}</span>
          <span class="visually-hidden">{props.file.status}</span>
        </span>
        <span class="file-path">{props.path}</span>
        <Show when={props.file.additions !== null || props.file.deletions !== null}>
          <LineCounts additions={props.file.additions ?? 0} deletions={props.file.deletions ?? 0} />
        </Show>
      </button>
      <Show when={isOpen()}>
        <div class="file-diff">
          <p>
            <A href={filePath(props.sessionId, props.file.path)}>Only this file</A>
          </p>
          {props.children}
        </div>
      </Show>
    </li>
  );
}

export function LineCounts(props: { additions: number; deletions: number }): JSX.Element {
  return (
    <span class="line-counts">
      <span class="visually-hidden">{`${props.additions} lines added, ${props.deletions} removed`}</span>
      <span class="lines-added" aria-hidden="true">
        +{formatCount(props.additions)}
      </span>{" "}
      <span class="lines-removed" aria-hidden="true">
        −{formatCount(props.deletions)}
      </span>
    </span>
  );
}
