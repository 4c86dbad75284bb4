/** The title of the page, without the number of open requests that the document title begins with. */

import { createEffect, createSignal, onCleanup } from "solid-js";

const PRODUCT = "Jackfield";
const [pageTitle, setPageTitle] = createSignal(PRODUCT);

export { pageTitle };

/** Sets the title while the calling component is shown. */
export function usePageTitle(title: () => string): void {
  createEffect(() => setPageTitle(title() === "" ? PRODUCT : `${title()} · ${PRODUCT}`));
  onCleanup(() => setPageTitle(PRODUCT));
}
