/** A block of code: highlighted when it does not grow any more, with a button that copies it. */

import { createEffect, createSignal, onCleanup, Show, type JSX } from "solid-js";
import { CopyButton } from "../../ui/copy-button";
import { highlightCode } from "../highlight";
import { TextPieces, type TextPiece } from "../text-pieces";

/** Code that changes within this time is still being written. */
const SETTLE_MS = 250;
const SHOWN_CHARS_MAX = 40_000;

export function CodeBlock(props: { text: string; language: string }): JSX.Element {
  const [highlighted, setHighlighted] = createSignal<{ text: string; pieces: TextPiece[] }>();
  const [isWhole, setWhole] = createSignal(false);
  const shown = (): string => (isWhole() ? props.text : props.text.slice(0, SHOWN_CHARS_MAX));
  createEffect(() => {
    const { text, language } = props;
    let isCurrent = true;
    const timer = setTimeout(() => {
      void highlightCode(text, language).then((pieces) => isCurrent && pieces && setHighlighted({ text, pieces }));
    }, SETTLE_MS);
    onCleanup(() => {
      isCurrent = false;
      clearTimeout(timer);
    });
  });
  const pieces = (): TextPiece[] | undefined => (highlighted()?.text === props.text ? highlighted()?.pieces : undefined);
  return (
    <div class="code-block">
      <div class="code-block-bar">
        <span>{props.language || "code"}</span>
        <CopyButton text={() => props.text} label="Copy code" />
      </div>
      <pre tabindex="0" role="region" aria-label={`Code ${props.language}`}>
        <code>
          <Show when={pieces()} fallback={shown()}>
            {(it) => <TextPieces pieces={it()} />}
          </Show>
        </code>
      </pre>
      <Show when={shown().length < props.text.length}>
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all ({props.text.length.toLocaleString()} characters)
        </button>
      </Show>
    </div>
  );
}
