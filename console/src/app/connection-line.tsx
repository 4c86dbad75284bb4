/** One line that says when the console is not connected, why, and what happens next. */

import { A, useLocation } from "@solidjs/router";
import { Match, Switch, type JSX } from "solid-js";
import { connection, reconnect } from "../state/daemon";

export function ConnectionLine(): JSX.Element {
  const location = useLocation();
  const isLoginPage = () => location.pathname.endsWith("/login");
  const loginPath = () => `/login?next=${encodeURIComponent(location.pathname.replace(/^\/console/, "") + location.search)}`;
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
              <button type="button" onClick={reconnect}>
                Retry now
              </button>
            </p>
          )}
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
