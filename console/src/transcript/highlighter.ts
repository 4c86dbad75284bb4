/** The highlighter itself, in a file of its own so that it is loaded only when code is shown. */

import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";

/** Its theme names variables instead of colors; `highlight.ts` turns these into classes, which both themes define. */
export function createHighlighter(): Promise<HighlighterCore> {
  return createHighlighterCore({
    themes: [createCssVariablesTheme({ name: "css-variables" })],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
}
