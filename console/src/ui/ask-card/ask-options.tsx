/** The options of a permission request as buttons, in the order of the agent. */

import type { Ask } from "jackfield-client";
import { For, Show, type JSX } from "solid-js";
import { visibleLine } from "../visible-text";
import { cutText } from "./ask-call";
import { isAllowing, keysOfOption, kindInWords } from "./option-keys";

const NAME_CHARS_MAX = 200;

interface AskOptionsProps {
  ask: Ask;
  isDisabled: boolean;
  /** The request has just appeared or moved, and cannot be answered yet. */
  isEarly: boolean;
  /** The click is passed, so that the card can ignore one that came too early. */
  onChoose(option: Ask["options"][number], event: Event): void;
  /** Denies a request that has no option for it. */
  onDeny(event: Event): void;
}

export function AskOptions(props: AskOptionsProps): JSX.Element {
  const hasRejection = (): boolean => props.ask.options.some((it) => it.kind.startsWith("reject"));
  return (
    <div class="ask-options" role="group" aria-label="Answers">
      <For each={props.ask.options}>
        {(option, index) => {
          const keys = (): string[] => keysOfOption(props.ask.options, index());
          return (
            <button
              type="button"
              class="ask-option"
              classList={{ "is-allowing": isAllowing(option) }}
              disabled={props.isDisabled}
              aria-disabled={props.isEarly}
              data-option-id={option.optionId}
              aria-keyshortcuts={keys().join(" ")}
              onClick={(event) => props.onChoose(option, event)}
            >
              <For each={keys()}>{(key) => <kbd aria-hidden="true">{key}</kbd>}</For>
              <span class="ask-option-name">{visibleLine(cutText(option.name || option.optionId, NAME_CHARS_MAX))}</span>
              <span class="ask-option-kind">{visibleLine(cutText(kindInWords(option.kind), NAME_CHARS_MAX))}</span>
            </button>
          );
        }}
      </For>
      <Show when={!hasRejection()}>
        <button type="button" class="ask-option" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={(event) => props.onDeny(event)}>
          <span class="ask-option-name">Deny</span>
          <span class="ask-option-kind">the agent offers no option for it</span>
        </button>
      </Show>
    </div>
  );
}
