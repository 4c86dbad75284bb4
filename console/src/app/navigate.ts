/** Navigation from code outside of components, such as dialogs. */

import { useNavigate } from "@solidjs/router";

let navigate: ((path: string) => void) | undefined;

/** Called once, by a component inside of the router. */
export function provideNavigation(): void {
  const go = useNavigate();
  navigate = (path) => go(path);
}

/** Goes to a page; the path is without `/console`. */
export const navigateTo = (path: string): void => navigate?.(path);

export const sessionPath = (sessionId: string): string => `/sessions/${encodeURIComponent(sessionId)}`;

/** The changes of one file in a session. */
export const filePath = (sessionId: string, file: string): string => `${sessionPath(sessionId)}/changes?file=${encodeURIComponent(file)}`;
