/** The tab "Changes" of a session: files by turn and for the session, from tool calls and from git. */

import { useSearchParams } from "@solidjs/router";
import { createSignal, For, Match, Show, Switch, type JSX } from "solid-js";
import { readChanges, type SessionChanges } from "../../../api/changes";
import { createReloading } from "../../../state/reloading";
import { sessionRow } from "../../../state/session-row";
import type { DiffLayout } from "../../../transcript/view/view-state";
import { formatNumberOf } from "../../../ui/format";
import { Loaded } from "../../../ui/loaded";
import { visibleLine } from "../../../ui/visible-text";
import "../../../ui/page.css";
import "./changes.css";
import { FileRow, GitFileRow, LineCounts, type OpenFiles } from "./file-row";
import { mergeTurns, sumLines } from "./merge";
import { OneFile } from "./one-file";

type View = "session" | "turns" | "git";

export default function Changes(props: { sessionId: string }): JSX.Element {
  const row = () => sessionRow(props.sessionId);
  // A turn that ends has changed files; the text is compared, so that other updates of the row load nothing.
  const source = () => JSON.stringify([props.sessionId, row()?.turns ?? 0, row()?.state === "working"]);
  const [changes, reload] = createReloading(source, () => readChanges(props.sessionId));
  const [query] = useSearchParams<{ file?: string }>();
  const [view, setView] = createSignal<View>("session");
  const open = createOpenFiles();
  const [mode, setMode] = createSignal<DiffLayout>("unified");

  return (
    <div class="page changes">
      <Loaded resource={changes} onRetry={reload}>
        {(data) => (
          <>
            <div class="page-header">
              <Show when={query.file === undefined}>
                <div class="changes-views" role="group" aria-label="Changes">
                  <Choice label="Session" isChosen={view() === "session"} onChoose={() => setView("session")} />
                  <Choice label="By turn" isChosen={view() === "turns"} onChoose={() => setView("turns")} />
                  <Show when={data().git}>
                    <Choice label="Git" isChosen={view() === "git"} onChoose={() => setView("git")} />
                  </Show>
                </div>
              </Show>
              <div class="changes-views changes-modes" role="group" aria-label="Diff">
                <Choice label="Unified" isChosen={mode() === "unified"} onChoose={() => setMode("unified")} />
                <Choice label="Side by side" isChosen={mode() === "split"} onChoose={() => setMode("split")} />
              </div>
            </div>
            <Switch>
              <Match when={query.file}>
                {(path) => <OneFile path={path()} changes={data()} cwd={row()?.cwd} mode={mode()} sessionId={props.sessionId} />}
              </Match>
              <Match when={view() === "session"}>
                <SessionFiles changes={data()} open={open} cwd={row()?.cwd} mode={mode()} sessionId={props.sessionId} />
              </Match>
              <Match when={view() === "turns"}>
                <TurnFiles changes={data()} open={open} cwd={row()?.cwd} mode={mode()} sessionId={props.sessionId} />
              </Match>
              <Match when={view() === "git"}>
                <GitFiles changes={data()} open={open} mode={mode()} sessionId={props.sessionId} />
              </Match>
            </Switch>
          </>
        )}
      </Loaded>
    </div>
  );
}

function Choice(props: { label: string; isChosen: boolean; onChoose(): void }): JSX.Element {
  return (
    <button type="button" aria-pressed={props.isChosen} onClick={() => props.onChoose()}>
      {props.label}
    </button>
  );
}

function createOpenFiles(): OpenFiles {
  const [paths, setPaths] = createSignal<ReadonlySet<string>>(new Set());
  return {
    has: (path) => paths().has(path),
    toggle: (path) => setPaths(paths().has(path) ? new Set([...paths()].filter((it) => it !== path)) : new Set([...paths(), path])),
  };
}

interface FilesProps {
  open: OpenFiles;
  changes: SessionChanges;
  mode: DiffLayout;
  sessionId: string;
  cwd?: string | undefined;
}

function SessionFiles(props: FilesProps): JSX.Element {
  const files = () => mergeTurns(props.changes.turns);
  return (
    <Show when={files().length > 0} fallback={<NoChanges />}>
      <p class="changes-sum">
        {formatNumberOf(files().length, "file")} <LineCounts {...sumLines(files())} />
      </p>
      <ul class="file-list">
        <For each={files()}>
          {(file) => <FileRow open={props.open} file={file} turns={file.turns} cwd={props.cwd} mode={props.mode} sessionId={props.sessionId} />}
        </For>
      </ul>
    </Show>
  );
}

function TurnFiles(props: FilesProps): JSX.Element {
  const turns = () => props.changes.turns.filter((it) => it.files.length > 0).toReversed();
  return (
    <For each={turns()} fallback={<NoChanges />}>
      {({ turn, files }) => (
        <section aria-label={`Turn ${turn}`}>
          <h2>
            Turn {turn} <LineCounts {...sumLines(files)} />
          </h2>
          <ul class="file-list">
            <For each={files}>
              {(file) => <FileRow open={props.open} file={file} turns={[{ turn, file }]} cwd={props.cwd} mode={props.mode} sessionId={props.sessionId} />}
            </For>
          </ul>
        </section>
      )}
    </For>
  );
}

function GitFiles(props: FilesProps): JSX.Element {
  const files = () => props.changes.git?.files ?? [];
  return (
    <>
      <p class="changes-sum">
        The working tree against the last commit
        <Show when={props.changes.git?.branch}>
          {(branch) => (
            <>
              {" "}
              on <code>{visibleLine(branch())}</code>
            </>
          )}
        </Show>
        : {formatNumberOf(files().length, "file")} <LineCounts {...sumLines(files())} />
      </p>
      <ul class="file-list">
        <For each={files()}>
          {(file) => <GitFileRow open={props.open} file={file} mode={props.mode} sessionId={props.sessionId} />}
        </For>
      </ul>
    </>
  );
}

function NoChanges(): JSX.Element {
  return <p class="muted">No tool call of this session has reported a changed file.</p>;
}
