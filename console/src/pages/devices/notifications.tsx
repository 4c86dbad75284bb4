/** The setting of notifications in this browser. */

import { createSignal, Match, onMount, Show, Switch, type JSX } from "solid-js";
import { errorText } from "../../api/client";
import { readPushState, turnPushOff, turnPushOn, type PushState } from "../../state/push";

export function Notifications(): JSX.Element {
  const [state, setState] = createSignal<PushState>();
  const [isBusy, setBusy] = createSignal(false);
  const [problem, setProblem] = createSignal<string>();
  const change = async (action: () => Promise<PushState>): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      setState(await action());
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  onMount(() => void change(readPushState));
  return (
    <section class="notifications" aria-labelledby="notifications">
      <h2 id="notifications">Notifications</h2>
      <Switch fallback={<p class="muted">Loading…</p>}>
        <Match when={state() === "unsupported"}>
          <p class="muted">
            This browser shows no notifications of this page. It needs a secure address (https, or this computer), and on an
            iPhone or iPad the page must be on the home screen.
          </p>
        </Match>
        <Match when={state() === "denied"}>
          <p class="muted">Notifications of this page are blocked in the settings of the browser.</p>
        </Match>
        <Match when={state() === "off"}>
          <p class="muted">Off. The browser can tell you when a session needs you, is done or has failed, also when this page is closed.</p>
          <button type="button" disabled={isBusy()} onClick={() => void change(turnPushOn)}>
            Turn on
          </button>
        </Match>
        <Match when={state() === "on"}>
          <p class="muted">
            On in this browser, for the events in <code>[notify]</code> of the daemon's configuration.
          </p>
          <button type="button" disabled={isBusy()} onClick={() => void change(turnPushOff)}>
            Turn off
          </button>
        </Match>
      </Switch>
      <div role="alert">
        <Show when={problem()}>{(text) => <p class="notice danger">{text()}</p>}</Show>
      </div>
    </section>
  );
}
