/** Text in pieces with classes: highlighted code and terminal output. */

import type { JSX } from "solid-js";

export interface TextPiece {
  text: string;
  /** Space-separated, empty for plain text. */
  classes: string;
}

/** The pieces as spans. They are created by hand: one component per word of code is too slow. */
export function TextPieces(props: { pieces: readonly TextPiece[] }): JSX.Element {
  const nodes = (): Node[] =>
    props.pieces.map(({ text, classes }) => {
      if (classes === "") return document.createTextNode(text);
      const span = document.createElement("span");
      span.className = classes;
      span.textContent = text;
      return span;
    });
  return <>{nodes()}</>;
}
