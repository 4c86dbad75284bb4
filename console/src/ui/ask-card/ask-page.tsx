/** A request to open a page in the browser: the host is shown, and the page opens only when the user says so. */

import { Show, type JSX } from "solid-js";
import { visibleLine } from "../visible-text";

interface AskPageProps {
  url: string;
  isDisabled: boolean;
  /** The request has just appeared or moved, and cannot be answered yet. */
  isEarly: boolean;
  /** Returns whether the page may open. */
  onOpen(event: Event): boolean;
  onDecline(event: Event): void;
  onCancel(event: Event): void;
}

/** The address, if the console may open it. */
function parseWebAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && (url.protocol === "https:" || url.protocol === "http:") ? url : undefined;
}

export function AskPage(props: AskPageProps): JSX.Element {
  const address = (): URL | undefined => parseWebAddress(props.url);
  return (
    <div class="ask-form">
      <dl class="ask-facts">
        <Show when={address()}>
          {(url) => (
            <>
              <dt>Host</dt>
              <dd>
                <strong>{url().host}</strong>
                <Show when={url().protocol === "http:"}> (not encrypted)</Show>
              </dd>
            </>
          )}
        </Show>
        <dt>Address</dt>
        <dd>
          <code>{visibleLine(props.url)}</code>
        </dd>
      </dl>
      <div class="ask-options" role="group" aria-label="Answers">
        <Show when={address()} fallback={<p class="ask-note">The console opens only http and https addresses.</p>}>
          {(url) => (
            <a
              class="ask-open"
              href={url().href}
              target="_blank"
              rel="noopener noreferrer"
              aria-disabled={props.isDisabled || props.isEarly}
              onClick={(event) => !props.onOpen(event) && event.preventDefault()}
            >
              Open {url().host} in a new tab
            </a>
          )}
        </Show>
        <button type="button" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={(event) => props.onDecline(event)}>
          Decline
        </button>
        <button type="button" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={(event) => props.onCancel(event)}>
          Cancel the question
        </button>
      </div>
    </div>
  );
}
