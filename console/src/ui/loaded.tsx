/** The content of a resource: a line while it is loading, the error with a button to try again, or the data. */

import { Match, Switch, type Accessor, type JSX, type Resource } from "solid-js";
import { errorText, isSignedOut } from "../api/client";
import "./page.css";

interface LoadedProps<T> {
  resource: Resource<T>;
  onRetry(): void;
  children(data: Accessor<NonNullable<T>>): JSX.Element;
}

/** A resource that is loaded again keeps its last data on the page until the new data is there. */
export function Loaded<T>(props: LoadedProps<T>): JSX.Element {
  const data = () => {
    const { state } = props.resource;
    return state === "ready" || state === "refreshing" ? props.resource.latest : undefined;
  };
  return (
    <Switch fallback={<p class="loading">Loading…</p>}>
      <Match when={props.resource.error !== undefined && !isSignedOut(props.resource.error)}>
        <div class="notice danger" role="alert">
          <p>{errorText(props.resource.error)}</p>
          <button type="button" onClick={() => props.onRetry()}>
            Try again
          </button>
        </div>
      </Match>
      <Match when={props.resource.error !== undefined}>
        <p class="loading">This page is shown after you have signed in.</p>
      </Match>
      <Match when={data()}>{(it) => props.children(it)}</Match>
    </Switch>
  );
}
