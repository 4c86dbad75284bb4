/** The login of this browser: read when the connection is live, so that it is current after a restart and a new login. */

import { createEffect, createRoot, createSignal } from "solid-js";
import { readMe, type Me } from "../api/account";
import { connection } from "./daemon";

const [me, setMe] = createSignal<Me | undefined>();

/** `undefined` until it is known, and after signing out. */
export { me, setMe };

createRoot(() => {
  createEffect(() => {
    const { status } = connection();
    if (status === "signed-out") setMe(undefined);
    // An error is shown by the connection line; the last known login stays.
    if (status === "live") readMe().then(setMe, () => {});
  });
});
