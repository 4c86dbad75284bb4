/** The unfinished prompt of each session, which survives a reload. */

const nameOf = (sessionId: string): string => `draft/${sessionId}`;

export const readDraft = (sessionId: string): string => localStorage.getItem(nameOf(sessionId)) ?? "";

export function saveDraft(sessionId: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(nameOf(sessionId));
    else localStorage.setItem(nameOf(sessionId), text);
  } catch {
    // The storage is full or not permitted: the draft is kept while the page is open.
  }
}
