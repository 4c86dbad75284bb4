/** The changes of one file: in each turn, and in the working tree. The address of the page names the file. */

import { A } from "@solidjs/router";
import { Show, type JSX } from "solid-js";
import { readGitDiff, type SessionChanges } from "../../../api/changes";
import { sessionPath } from "../../../app/navigate";
import type { DiffLayout } from "../../../transcript/view/view-state";
import { visibleLine } from "../../../ui/visible-text";
import { GitDiff, TurnDiffs } from "./file-row";
import { mergeTurns, shortPath } from "./merge";

interface OneFileProps {
  /** As a tool call or git names it. */
  path: string;
  changes: SessionChanges;
  cwd: string | undefined;
  mode: DiffLayout;
  sessionId: string;
}

export function OneFile(props: OneFileProps): JSX.Element {
  const isFile = (it: { path: string }): boolean => shortPath(it.path, props.cwd) === shortPath(props.path, props.cwd);
  const inTurns = () => mergeTurns(props.changes.turns).find(isFile);
  const inGit = () => props.changes.git?.files.find(isFile);
  return (
    <section class="one-file" aria-labelledby="one-file">
      <p class="changes-sum">
        <A href={`${sessionPath(props.sessionId)}/changes`}>All files</A>
      </p>
      <h2 id="one-file" class="file-path">
        {visibleLine(shortPath(props.path, props.cwd))}
      </h2>
      <Show when={inTurns() || inGit()} fallback={<p class="muted">Neither a tool call of this session nor git reports a change of this file.</p>}>
        <Show when={inTurns()}>
          {(file) => (
            <div class="file file-diff">
              <TurnDiffs path={file().path} turns={file().turns} mode={props.mode} sessionId={props.sessionId} />
            </div>
          )}
        </Show>
        <Show when={inGit()?.path} keyed>
          {(path) => (
            <div class="file file-diff">
              <p class="muted">Working tree against the last commit</p>
              <GitDiff readDiff={() => readGitDiff(props.sessionId, path)} mode={props.mode} label={visibleLine(path)} />
            </div>
          )}
        </Show>
      </Show>
    </section>
  );
}
