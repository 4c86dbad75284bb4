/** Keys that are commands of a page. */

/** Whether the key is typed neither into a field or dialog nor with a modifier, and no other code has used it. */
export function isPlainKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return false;
  const target = event.target instanceof Element ? event.target : null;
  return target?.closest("input, select, textarea, dialog, [contenteditable]") === null;
}
