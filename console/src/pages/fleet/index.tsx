/** The page "Fleet": hosts with their state, load and sessions. */

import { createSignal, Index, onCleanup, Show, type JSX } from "solid-js";
import { errorText } from "../../api/client";
import { drainHost, listHosts, type Host } from "../../api/hosts";
import { me } from "../../state/me";
import { createReloading } from "../../state/reloading";
import { ConfirmDialog } from "../../ui/confirm-dialog";
import { formatNumberOf } from "../../ui/format";
import { Loaded } from "../../ui/loaded";
import "../../ui/page.css";
import "./fleet.css";
import { HostCard } from "./host-card";

/** Hosts are not in the change stream: a visible page requests them this often. */
const REFRESH_MS = 5_000;

export default function FleetPage(): JSX.Element {
  const [hosts, reload] = createReloading(() => true, listHosts);
  const [drained, setDrained] = createSignal<Host>();
  const [problem, setProblem] = createSignal<string>();
  const timer = setInterval(() => document.visibilityState === "visible" && !hosts.loading && reload(), REFRESH_MS);
  onCleanup(() => clearInterval(timer));

  const setDraining = async (host: Host, drain: boolean): Promise<void> => {
    setDrained(undefined);
    setProblem(undefined);
    await drainHost(host.name, drain).catch((error: unknown) => setProblem(errorText(error)));
    reload();
  };
  return (
    <div class="page fleet">
      <h1>Fleet</h1>
      <div role="alert">
        <Show when={problem()}>{(text) => <p class="notice danger">{text()}</p>}</Show>
      </div>
      <Loaded resource={hosts} onRetry={reload}>
        {(all) => (
          <Show when={all().length > 0} fallback={<NoHosts />}>
            <p class="muted">
              {formatNumberOf(all().length, "host")}, {formatNumberOf(all().reduce((sum, it) => sum + it.sessions, 0), "session")}
            </p>
            <ul class="host-list">
              {/* By position: a card keeps its state when the hosts are requested again. */}
              <Index each={all()}>
                {(host) => (
                  <HostCard
                    host={host()}
                    canDrain={me()?.operator ?? false}
                    onDrain={() => setDrained(host())}
                    onResume={() => void setDraining(host(), false)}
                  />
                )}
              </Index>
            </ul>
          </Show>
        )}
      </Loaded>
      <ConfirmDialog
        isOpen={drained() !== undefined}
        title={`Drain ${drained()?.name ?? ""}?`}
        confirmLabel="Drain"
        onCancel={() => setDrained(undefined)}
        onConfirm={() => void setDraining(drained() as Host, true)}
      >
        The host accepts no new sessions. Its {formatNumberOf(drained()?.sessions ?? 0, "session")} move to other hosts: idle ones at
        once, others after their turn.
      </ConfirmDialog>
    </div>
  );
}

function NoHosts(): JSX.Element {
  return (
    <p class="muted">
      There are no hosts. A daemon joins a fleet with <code>jackfield serve --fleet … --role host</code>.
    </p>
  );
}
