/** Makes an element that scrolls reachable by keyboard, and only while it scrolls. */

import { onCleanup } from "solid-js";

/** For `ref` of the element. */
export function focusWhileScrollable(element: HTMLElement): void {
  const update = (): void => {
    const scrolls = element.scrollHeight > element.clientHeight + 1 || element.scrollWidth > element.clientWidth + 1;
    if (scrolls) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  };
  const observer = new ResizeObserver(update);
  observer.observe(element);
  onCleanup(() => observer.disconnect());
}
