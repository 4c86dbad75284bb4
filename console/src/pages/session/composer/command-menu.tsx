/** The commands of the agent that match what is typed. The keys are handled by the box that has the focus. */

import { For, Show, createEffect, type JSX } from "solid-js";
import { visibleLine } from "../../../ui/visible-text";
import type { SlashCommand } from "./slash-commands";

interface CommandMenuProps {
  id: string;
  commands: SlashCommand[];
  selected: number;
  onChoose(command: SlashCommand): void;
}

export const commandOptionId = (menuId: string, index: number): string => `${menuId}-${index}`;

export function CommandMenu(props: CommandMenuProps): JSX.Element {
  let list: HTMLUListElement | undefined;
  createEffect(() => list?.children[props.selected]?.scrollIntoView({ block: "nearest" }));
  return (
    <Show when={props.commands.length > 0}>
      <ul class="commands" id={props.id} role="listbox" aria-label="Commands" ref={list}>
        <For each={props.commands}>
          {(command, index) => (
            <li
              id={commandOptionId(props.id, index())}
              role="option"
              aria-selected={index() === props.selected}
              class="command"
              // The box keeps the focus.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => props.onChoose(command)}
            >
              <span class="command-name">
                /{visibleLine(command.name)} <span class="command-hint">{visibleLine(command.hint ?? "")}</span>
              </span>
              <span class="command-description">{visibleLine(command.description)}</span>
            </li>
          )}
        </For>
      </ul>
    </Show>
  );
}
