/** What the reader has opened or chosen in a transcript. It outlives rows that are scrolled out of sight. */

import { createContext, createSignal, useContext, type Accessor } from "solid-js";
import { createStore } from "solid-js/store";

export type DiffLayout = "unified" | "split";

export interface TranscriptView {
  sessionId: string;
  /** Whether a section is open; `isOpen` if the reader has not said. */
  isOpen(key: string, isOpen: boolean): boolean;
  setOpen(key: string, isOpen: boolean): void;
  diffLayout: Accessor<DiffLayout>;
  setDiffLayout(layout: DiffLayout): void;
  /** The event whose link was followed. */
  target: Accessor<number | undefined>;
}

const LAYOUT_KEY = "diff-layout";
const ViewContext = createContext<TranscriptView>();

export const TranscriptViewProvider = ViewContext.Provider;

export function createTranscriptView(sessionId: string, target: Accessor<number | undefined>): TranscriptView {
  const [open, setOpen] = createStore<Record<string, boolean>>({});
  const [diffLayout, setLayout] = createSignal<DiffLayout>(localStorage.getItem(LAYOUT_KEY) === "split" ? "split" : "unified");
  return {
    sessionId,
    isOpen: (key, isOpen) => open[key] ?? isOpen,
    setOpen: (key, isOpen) => setOpen(key, isOpen),
    diffLayout,
    setDiffLayout: (layout) => {
      localStorage.setItem(LAYOUT_KEY, layout);
      setLayout(layout);
    },
    target,
  };
}

export function useTranscriptView(): TranscriptView {
  const view = useContext(ViewContext);
  if (!view) throw new Error("a transcript component is outside of a transcript");
  return view;
}
