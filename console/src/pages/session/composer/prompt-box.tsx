/** The box for a prompt: grows with its text, completes commands, and walks through earlier prompts. */

import { createEffect, createMemo, createSignal, createUniqueId, onMount, type JSX } from "solid-js";
import { CommandMenu, commandOptionId } from "./command-menu";
import type { PromptHistory } from "./prompt-history";
import { isSendKey, sendKey } from "./send-key";
import { insertCommand, matchCommands, type SlashCommand } from "./slash-commands";

interface PromptBoxProps {
  text: string;
  onText(text: string): void;
  commands: readonly SlashCommand[];
  history: PromptHistory;
  /** The prompts of the log are needed. */
  onHistory(): Promise<void>;
  onSend(isSteering: boolean): void;
  onFiles(files: File[]): void;
  /** Receives the element when it is made. */
  onBox(box: HTMLTextAreaElement): void;
  placeholder: string;
}

const canGrow = CSS.supports("field-sizing", "content");

export function PromptBox(props: PromptBoxProps): JSX.Element {
  const menuId = createUniqueId();
  const [caret, setCaret] = createSignal(0);
  const [selected, setSelected] = createSignal(0);
  const [isMenuClosed, setMenuClosed] = createSignal(false);
  const matches = createMemo(() => (isMenuClosed() ? [] : matchCommands(props.text, caret(), props.commands)));
  const isMenuOpen = (): boolean => matches().length > 0;
  let box!: HTMLTextAreaElement;

  createEffect(() => {
    if (box.value !== props.text) box.value = props.text;
    if (!canGrow) growBox(box);
  });
  onMount(() => {
    props.onBox(box);
    if (matchMedia("(pointer: fine)").matches) box.focus({ preventScroll: true });
  });

  const setText = (text: string): void => {
    props.onText(text);
    box.value = text;
    box.setSelectionRange(text.length, text.length);
    setCaret(text.length);
  };
  const choose = (command: SlashCommand): void => {
    setText(insertCommand(props.text, command.name));
    setMenuClosed(true);
    box.focus();
  };
  const onInput = (): void => {
    props.history.leave();
    setMenuClosed(false);
    setSelected(0);
    setCaret(box.selectionStart);
    props.onText(box.value);
  };
  const walk = async (step: "previous" | "next"): Promise<void> => {
    await props.onHistory();
    const text = props.history[step]();
    if (text !== undefined) setText(text);
    setMenuClosed(true);
  };

  /** Returns whether the menu used the key. */
  const onMenuKey = (event: KeyboardEvent): boolean => {
    if (!isMenuOpen() || event.isComposing) return false;
    const count = matches().length;
    const command = matches()[selected()];
    if (event.key === "ArrowDown") setSelected((it) => (it + 1) % count);
    else if (event.key === "ArrowUp") setSelected((it) => (it + count - 1) % count);
    else if (event.key === "Escape") setMenuClosed(true);
    else if ((event.key === "Tab" || event.key === "Enter") && !event.shiftKey && command && props.text.trim() !== `/${command.name}`) choose(command);
    else return false;
    return true;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    const canWalk = isPlain && (props.text === "" || props.history.isBrowsing);
    if (onMenuKey(event)) event.preventDefault();
    else if (event.key === "Enter" && event.altKey && !event.isComposing) {
      event.preventDefault();
      props.onSend(true);
    } else if (isSendKey(event, sendKey())) {
      event.preventDefault();
      props.onSend(false);
    } else if (event.key === "ArrowUp" && canWalk) {
      event.preventDefault();
      void walk("previous");
    } else if (event.key === "ArrowDown" && canWalk && props.history.isBrowsing) {
      event.preventDefault();
      void walk("next");
    } else return;
    // A key that was used here is none of the page's.
    event.stopPropagation();
  };

  return (
    <div class="prompt-box">
      <CommandMenu id={menuId} commands={matches()} selected={selected()} onChoose={choose} />
      <textarea
        ref={box}
        class="prompt-text"
        rows="1"
        aria-label="Prompt"
        placeholder={props.placeholder}
        autocomplete="off"
        aria-controls={isMenuOpen() ? menuId : undefined}
        aria-activedescendant={isMenuOpen() ? commandOptionId(menuId, selected()) : undefined}
        onInput={onInput}
        onKeyDown={onKeyDown}
        onSelect={() => setCaret(box.selectionStart)}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          props.onFiles(files);
        }}
      />
    </div>
  );
}

/** For browsers without `field-sizing`; the style sheet limits the height. */
function growBox(box: HTMLTextAreaElement): void {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}
