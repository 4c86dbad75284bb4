/** A button that copies a text. */

import { createSignal, type JSX } from "solid-js";

export function CopyButton(props: { text: () => string; label: string }): JSX.Element {
  const [isCopied, setCopied] = createSignal(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(props.text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="quiet copy-button" aria-label={props.label} onClick={() => void copy()}>
      {isCopied() ? "Copied" : "Copy"}
    </button>
  );
}
