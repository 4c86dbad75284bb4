/** A sentence of the daemon, whose literals are in backticks. */

import { For, type JSX } from "solid-js";
import { visibleProse } from "./visible-text";

/** Shows the parts between backticks as code. */
export function CodeText(props: { text: string }): JSX.Element {
  const parts = () => visibleProse(props.text).split("`");
  // Without a closing backtick the last part is text.
  const isCode = (index: number): boolean => index % 2 === 1 && index < parts().length - 1;
  return (
    <For each={parts()}>
      {(part, index) => (isCode(index()) ? <code>{part}</code> : index() % 2 === 1 ? `\`${part}` : part)}
    </For>
  );
}
