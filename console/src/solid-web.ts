/**
 * `solid-js/web`, whose templates are created with our Trusted Types policy.
 *
 * The build replaces the import of `solid-js/web` by this module in all code, also in libraries.
 */

// @ts-expect-error The file has no types of its own; TypeScript uses those of `solid-js/web`.
export * from "solid-js/web/dist/web.js";
import { untrack } from "solid-js";
import { templateHtml } from "./trusted";

type Template = (() => Node) & { cloneNode: () => Node };

/** Creates the nodes of a template once, and copies them for each use. */
export function template(html: string, isImported?: boolean, isSvg?: boolean, isMathMl?: boolean): Template {
  let first: Node | undefined;
  const create = (): Node => {
    const holder = document.createElement("template");
    holder.innerHTML = templateHtml(html);
    const node = holder.content.firstChild as Node;
    return isSvg || isMathMl ? (node.firstChild as Node) : node;
  };
  const node = (): Node => (first ??= create());
  const copy = isImported
    ? (): Node => untrack(() => document.importNode(node(), true))
    : (): Node => node().cloneNode(true);
  return Object.assign(copy, { cloneNode: copy });
}
