/** The find bar: searches the whole session, not only what is drawn. A second Ctrl+F opens the browser's own. */

import type { MatchList } from "jackfield-client";
import { createEffect, createSignal, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { api, errorText } from "../../api/client";
import { visibleProse } from "../../ui/visible-text";

type LogMatch = MatchList["matches"][number];

interface FindBarProps {
  sessionId: string;
  /** Called with the event of the chosen match; with nothing when the bar is closed. */
  onFound(seq: number | undefined): void;
}

/** The search begins when nothing was typed for this time. */
const TYPING_MS = 200;
const PAGE_MATCHES = 100;

export function FindBar(props: FindBarProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const [text, setText] = createSignal("");
  const [matches, setMatches] = createSignal<LogMatch[]>([]);
  const [hasMore, setHasMore] = createSignal(false);
  const [index, setIndex] = createSignal(0);
  const [problem, setProblem] = createSignal("");
  let input!: HTMLInputElement;
  let request: AbortController | undefined;
  /** What had the focus before. */
  let origin: Element | null = null;

  /** Searches before the oldest match, or from the end. */
  const search = async (before?: number): Promise<void> => {
    request?.abort();
    const current = new AbortController();
    request = current;
    try {
      const range = before === undefined ? {} : { before };
      const page = await api.sessions.find(props.sessionId, text(), { limit: PAGE_MATCHES, ...range, signal: current.signal });
      setMatches((it) => (before === undefined ? page.matches : [...it, ...page.matches]));
      setHasMore(page.hasMore);
      setProblem("");
    } catch (error) {
      if (!current.signal.aborted) setProblem(errorText(error));
    }
  };
  const show = (next: number): void => {
    const match = matches()[next];
    if (!match) return;
    setIndex(next);
    props.onFound(match.seq);
  };
  /** Matches are in order of age, the newest first: "next" goes up in the transcript. */
  const step = async (by: 1 | -1): Promise<void> => {
    const next = index() + by;
    if (next >= matches().length && hasMore()) await search(matches().at(-1)?.seq);
    show(next < 0 ? matches().length - 1 : next >= matches().length ? 0 : next);
  };
  const close = (): void => {
    request?.abort();
    setOpen(false);
    setMatches([]);
    props.onFound(undefined);
    if (origin instanceof HTMLElement) origin.focus({ preventScroll: true });
  };

  createEffect(
    on(text, (it) => {
      setMatches([]);
      setIndex(0);
      request?.abort();
      if (it.trim() === "") return;
      const timer = setTimeout(() => void search().then(() => show(0)), TYPING_MS);
      onCleanup(() => clearTimeout(timer));
    }),
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    const isFind = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "f";
    if (!isFind || (isOpen() && document.activeElement === input)) return;
    event.preventDefault();
    if (!isOpen()) origin = document.activeElement;
    setOpen(true);
    input.focus();
    input.select();
  };
  const onInputKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter") void step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  onMount(() => {
    addEventListener("keydown", onKeyDown);
    onCleanup(() => removeEventListener("keydown", onKeyDown));
  });
  onCleanup(() => request?.abort());

  const count = (): string => {
    if (problem() !== "") return problem();
    if (text().trim() === "") return "";
    if (matches().length === 0) return "No match";
    return `${index() + 1} of ${matches().length}${hasMore() ? "+" : ""}`;
  };
  return (
    <Show when={isOpen()}>
      <search class="find-bar">
        <input
          ref={input}
          type="search"
          aria-label="Find in the session"
          placeholder="Find in the whole session"
          value={text()}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onInputKey}
        />
        <button type="button" aria-label="Previous match" title="Later in the session (Shift+Enter)" disabled={matches().length === 0} onClick={() => void step(-1)}>
          ↓
        </button>
        <button type="button" aria-label="Next match" title="Earlier in the session (Enter)" disabled={matches().length === 0} onClick={() => void step(1)}>
          ↑
        </button>
        <output aria-live="polite">{count()}</output>
        <button type="button" class="quiet" aria-label="Close the find bar" onClick={close}>
          ✕
        </button>
        <Show when={matches()[index()]}>{(it) => <Snippet match={it()} text={text()} />}</Show>
      </search>
    </Show>
  );
}

/** The text around a match. */
function Snippet(props: { match: LogMatch; text: string }): JSX.Element {
  const part = (from: number, to?: number): string => visibleProse(props.match.snippet.slice(from, to));
  const start = (): number => Math.max(0, props.match.snippet.toLowerCase().indexOf(props.text.toLowerCase()));
  const end = (): number => start() + props.text.length;
  return (
    <p class="find-snippet">
      <span class="muted">{props.match.part}: </span>
      {part(0, start())}
      <mark>{part(start(), end())}</mark>
      {part(end())}
    </p>
  );
}
