/** Data of a page that is not in the change stream: requested when it is shown, and again after a lost connection. */

import { createEffect, createResource, on, type Resource } from "solid-js";
import { connection } from "./daemon";

/**
 * Calls `load` now, when its source changes, and when the connection to the daemon is back.
 * Returns the data and a function that requests it again.
 */
export function createReloading<S, T>(source: () => S | false | null | undefined, load: (source: S) => Promise<T>): [Resource<T>, () => void] {
  const [resource, { refetch }] = createResource(source, (it: S) => load(it));
  const isLive = () => connection().status === "live";
  createEffect(
    on(isLive, (live, wasLive) => {
      if (live && wasLive === false && !resource.loading) void refetch();
    }),
  );
  return [resource, () => void refetch()];
}
