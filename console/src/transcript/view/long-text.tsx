/** Long text that is shown in portions, so that a line of megabytes does not block the page. */

import { createMemo, createSignal, Show, type JSX } from "solid-js";
import { visibleLines } from "../../ui/visible-text";
import { parseTerminalOutput } from "../ansi";
import { TextPieces } from "../text-pieces";

interface LongTextProps {
  text: string;
  /** The text has terminal colors. */
  isTerminal?: boolean;
  label: string;
}

const FIRST_CHARS = 3000;
const FIRST_LINES = 25;
const MORE_CHARS = 100_000;

/** The beginning of a text, up to some lines and characters. */
function firstPart(text: string, chars: number, lines: number): string {
  let end = -1;
  for (let count = 0; count < lines; count += 1) {
    const next = text.indexOf("\n", end + 1);
    if (next < 0 || next > chars) return text.slice(0, chars);
    end = next;
  }
  return text.slice(0, end);
}

export function LongText(props: LongTextProps): JSX.Element {
  const [chars, setChars] = createSignal(0);
  const shown = createMemo(() => (chars() === 0 ? firstPart(props.text, FIRST_CHARS, FIRST_LINES) : props.text.slice(0, chars())));
  const rest = (): number => props.text.length - shown().length;
  return (
    <>
      <pre class="long-text" tabindex="0" role="region" aria-label={props.label}>
        <Show when={props.isTerminal} fallback={visibleLines(shown())}>
          <TextPieces pieces={parseTerminalOutput(shown())} />
        </Show>
      </pre>
      <Show when={rest() > 0}>
        <button type="button" class="quiet long-text-more" onClick={() => setChars(shown().length + MORE_CHARS)}>
          {rest() > MORE_CHARS ? "Show more" : "Show all"} ({rest().toLocaleString()} more characters)
        </button>
      </Show>
    </>
  );
}
