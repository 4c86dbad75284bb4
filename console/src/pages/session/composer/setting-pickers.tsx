/** The mode, the model and the options that the agent offers, each as a list to choose from. */

import type { SessionSettings } from "jackfield-client";
import { For, Show, type JSX } from "solid-js";
import { visibleLine } from "../../../ui/visible-text";
import type { SessionControl } from "./session-control";

type SessionOption = SessionSettings["options"][number];

export function SettingPickers(props: { control: SessionControl }): JSX.Element {
  const settings = () => props.control.settings();
  return (
    <Show when={settings()}>
      {(it) => (
        <div class="pickers">
          <Show when={it().modes}>
            {(modes) => (
              <Picker
                name="Mode"
                current={modes().current ?? ""}
                choices={modes().available.map(({ id, name, description }) => ({ value: id, name, description }))}
                onChoose={(mode) => void props.control.changeSetting({ mode })}
              />
            )}
          </Show>
          <Show when={it().models}>
            {(models) => (
              <Picker
                name="Model"
                current={models().current ?? ""}
                choices={models().available.map(({ id, name, description }) => ({ value: id, name, description }))}
                onChoose={(model) => void props.control.changeSetting({ model })}
              />
            )}
          </Show>
          <For each={it().options}>{(option) => <OptionPicker option={option} control={props.control} />}</For>
        </div>
      )}
    </Show>
  );
}

function OptionPicker(props: { option: SessionOption; control: SessionControl }): JSX.Element {
  const choose = (value: string | boolean): void => void props.control.changeSetting({ option: { id: props.option.id, value } });
  return (
    <Show
      when={props.option.type !== "boolean"}
      fallback={
        <label class="picker-check" title={visibleLine(props.option.description ?? "")}>
          <input type="checkbox" checked={props.option.current === true} onChange={(event) => choose(event.currentTarget.checked)} />
          {visibleLine(props.option.name)}
        </label>
      }
    >
      <Picker name={props.option.name} current={String(props.option.current ?? "")} choices={props.option.choices} onChoose={choose} />
    </Show>
  );
}

interface PickerProps {
  name: string;
  current: string;
  choices: { value: string; name: string; description?: string | null | undefined }[];
  onChoose(value: string): void;
}

/** A native list: it works with touch, keyboard and screen readers, and costs nothing to load. */
function Picker(props: PickerProps): JSX.Element {
  const isListed = (): boolean => props.choices.some((it) => it.value === props.current);
  return (
    <span class="picker">
      <span class="picker-name" aria-hidden="true">
        {visibleLine(props.name)}
      </span>
      <select aria-label={visibleLine(props.name)} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        <Show when={!isListed()}>
          <option value={props.current} selected>
            {visibleLine(props.current) || "default"}
          </option>
        </Show>
        <For each={props.choices}>
          {(it) => (
            <option value={it.value} selected={it.value === props.current} title={visibleLine(it.description ?? "")}>
              {visibleLine(it.name)}
            </option>
          )}
        </For>
      </select>
    </span>
  );
}
