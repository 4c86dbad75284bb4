/** The unfinished prompt of each session and its files, which survive a reload. */

/** A file that the daemon has stored for the prompt. */
export interface DraftFile {
  name: string;
  size: number;
  /** Where the daemon stored it. */
  path: string;
}

const textKey = (sessionId: string): string => `draft/${sessionId}`;
const filesKey = (sessionId: string): string => `draft-files/${sessionId}`;

export const readDraft = (sessionId: string): string => localStorage.getItem(textKey(sessionId)) ?? "";

export const saveDraft = (sessionId: string, text: string): void => store(textKey(sessionId), text);

export function readDraftFiles(sessionId: string): DraftFile[] {
  try {
    const files: unknown = JSON.parse(localStorage.getItem(filesKey(sessionId)) ?? "[]");
    return Array.isArray(files) ? files : [];
  } catch {
    return [];
  }
}

export const saveDraftFiles = (sessionId: string, files: readonly DraftFile[]): void =>
  store(filesKey(sessionId), files.length === 0 ? "" : JSON.stringify(files));

function store(key: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    // The storage is full or not permitted: the draft is kept while the page is open.
  }
}
