/** One line that says when the console is not connected, why, and what happens next. */

import { A, useLocation } from "@solidjs/router";
import { Match, Show, Switch, type JSX } from "solid-js";
import { connection, reconnect, storedListAt } from "../state/daemon";
import { isUpdated } from "../state/offline";
import { TimeAgo } from "../ui/time-ago";

export function ConnectionLine(): JSX.Element {
  const route = useLocation();
  const isLoginPage = () => route.pathname.endsWith("/login");
  const loginPath = () => `/login?next=${encodeURIComponent(route.pathname.replace(/^\/console/, "") + route.search)}`;
  const lost = () => {
    const state = connection();
    return state.status === "lost" ? state : undefined;
  };
  return (
    <div class="connection-status" role="status" aria-live="polite">
      <Switch>
        <Match when={lost()}>
          {(state) => (
            <p class="connection-line">
              The connection to the daemon is lost ({state().why}). It is retried automatically; nothing is lost.{" "}
              <Show when={storedListAt()}>
                {(at) => (
                  <>
                    The list is the last known one (<TimeAgo at={at()} />).{" "}
                  </>
                )}
              </Show>
              <button type="button" onClick={reconnect}>
                Retry now
              </button>
            </p>
          )}
        </Match>
        <Match when={isUpdated()}>
          <p class="connection-line">
            The daemon has a new version of this page.{" "}
            <button type="button" onClick={() => location.reload()}>
              Reload
            </button>
          </p>
        </Match>
        <Match when={connection().status === "signed-out" && !isLoginPage()}>
          <p class="connection-line">
            This browser is signed out. Run <code>jackfield console</code> to sign in again, or{" "}
            <A href={loginPath()}>enter a code</A>.
          </p>
        </Match>
      </Switch>
    </div>
  );
}
