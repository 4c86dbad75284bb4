/** The page of a session: its header, the tabs "Transcript", "Changes" and "Timeline", and the composer below. */

import { A, useParams, useSearchParams } from "@solidjs/router";
import { createSignal, lazy, Match, Show, Suspense, Switch, type JSX } from "solid-js";
import { sessionPath } from "../../app/navigate";
import { usePageTitle } from "../../app/page-title";
import { sessionRow } from "../../state/session-row";
import { openSessionLog } from "../../state/open-session-log";
import { createTranscriptView, TranscriptViewProvider } from "../../transcript/view/view-state";
import { shortLine } from "../../ui/visible-text";
import { FindBar } from "./find-bar";
import { SessionHeader } from "./header";
import "./session.css";
import { TranscriptTab } from "./transcript-tab";

const Changes = lazy(() => import("./changes"));
const Timeline = lazy(() => import("./timeline"));
const Composer = lazy(() => import("./composer"));

export default function SessionPage(): JSX.Element {
  const params = useParams<{ id: string; tab?: string }>();
  return (
    <Show when={params.id} keyed>
      {(id) => <OneSession sessionId={id} tab={params.tab} />}
    </Show>
  );
}

function OneSession(props: { sessionId: string; tab: string | undefined }): JSX.Element {
  const { sessionId } = props;
  const row = () => sessionRow(sessionId);
  const [query] = useSearchParams<{ event?: string }>();
  const linked = (): number | undefined => (/^\d+$/.test(query.event ?? "") ? Number(query.event) : undefined);
  const [found, setFound] = createSignal<number>();
  const target = (): number | undefined => found() ?? linked();
  const first = linked();
  const log = openSessionLog(sessionId, first === undefined ? "end" : { seq: first });
  const view = createTranscriptView(sessionId, target);
  const isTranscript = (): boolean => props.tab !== "changes" && props.tab !== "timeline";
  usePageTitle(() => shortLine(row()?.name || row()?.title || sessionId, 60));
  return (
    <div class="session">
      <SessionHeader sessionId={sessionId} row={row()} />
      <SessionTabs sessionId={sessionId} />
      <Show when={log.state().status === "gone"}>
        <p class="session-gone" role="alert">
          This session was deleted. <A href="/">Show all sessions</A>
        </p>
      </Show>
      <Suspense fallback={<p class="loading">Loading…</p>}>
        <Switch>
          <Match when={props.tab === "changes"}>
            <div class="session-tab">
              <Changes sessionId={sessionId} />
            </div>
          </Match>
          <Match when={props.tab === "timeline"}>
            <div class="session-tab">
              <Timeline sessionId={sessionId} />
            </div>
          </Match>
          <Match when={isTranscript()}>
            <TranscriptViewProvider value={view}>
              <FindBar sessionId={sessionId} onFound={setFound} />
              <TranscriptTab log={log} target={target()} />
            </TranscriptViewProvider>
          </Match>
        </Switch>
      </Suspense>
      <Show when={isTranscript() && log.state().status !== "gone"}>
        <Suspense>
          <Composer sessionId={sessionId} />
        </Suspense>
      </Show>
    </div>
  );
}

function SessionTabs(props: { sessionId: string }): JSX.Element {
  const path = (): string => sessionPath(props.sessionId);
  return (
    <nav class="session-tabs" aria-label="Views of the session">
      <A href={path()} end>
        Transcript
      </A>
      <A href={`${path()}/changes`}>Changes</A>
      <A href={`${path()}/timeline`}>Timeline</A>
    </nav>
  );
}
