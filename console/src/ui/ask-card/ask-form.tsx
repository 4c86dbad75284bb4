/** The form of an elicitation. Its fields come from the agent's schema; nothing is sent before the user accepts. */

import { For, Match, Show, Switch, createMemo, createSignal, createUniqueId, type JSX } from "solid-js";
import { createStore } from "solid-js/store";
import { visibleLine, visibleProse } from "../visible-text";
import { checkValue, readFields, toContent, type FieldValue, type FormContent, type FormField } from "./form-schema";

interface AskFormProps {
  schema: unknown;
  isDisabled: boolean;
  /** The request has just appeared or moved, and cannot be answered yet. */
  isEarly: boolean;
  onAccept(content: FormContent, event: Event): void;
  onDecline(event: Event): void;
  onCancel(event: Event): void;
}

export function AskForm(props: AskFormProps): JSX.Element {
  const fields = createMemo(() => readFields(props.schema));
  const [values, setValues] = createStore<Record<string, FieldValue>>({});
  const [isChecked, setChecked] = createSignal(false);
  const valueOf = (field: FormField): FieldValue => values[field.name] ?? field.initial;
  const problemOf = (field: FormField): string | undefined => checkValue(field, valueOf(field));
  let form!: HTMLFormElement;

  /** Enter in a field clicks the button, too; the click knows whether it comes from a key or a pointer. */
  const submit = (event: MouseEvent): void => {
    event.preventDefault();
    setChecked(true);
    if (!fields().some((it) => problemOf(it) !== undefined)) return props.onAccept(toContent(fields(), values), event);
    form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  };

  return (
    <form class="ask-form" noValidate ref={form}>
      <Show when={fields().length === 0}>
        <p class="ask-note">The form has no fields. Accept it to agree.</p>
      </Show>
      <For each={fields()}>
        {(field) => (
          <FormRow
            field={field}
            value={valueOf(field)}
            problem={isChecked() ? problemOf(field) : undefined}
            isDisabled={props.isDisabled}
            onChange={(value) => setValues({ [field.name]: value })}
          />
        )}
      </For>
      <div class="ask-options" role="group" aria-label="Answers">
        <button type="submit" class="primary" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={submit}>
          Send answer
        </button>
        <button type="button" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={(event) => props.onDecline(event)}>
          Decline
        </button>
        <button type="button" disabled={props.isDisabled} aria-disabled={props.isEarly} onClick={(event) => props.onCancel(event)}>
          Cancel the question
        </button>
      </div>
    </form>
  );
}

interface FormRowProps {
  field: FormField;
  value: FieldValue;
  problem: string | undefined;
  isDisabled: boolean;
  onChange(value: FieldValue): void;
}

function FormRow(props: FormRowProps): JSX.Element {
  const id = createUniqueId();
  const label = (): string => visibleLine(props.field.label) + (props.field.isRequired ? " (required)" : "");
  const isGroup = (): boolean => props.field.kind === "choices";
  const describedBy = (): string => `${id}-help ${id}-problem`;
  return (
    <div class="ask-field" role={isGroup() ? "group" : undefined} aria-labelledby={isGroup() ? `${id}-label` : undefined}>
      <Show when={isGroup()} fallback={<label for={id}>{label()}</label>}>
        <span id={`${id}-label`}>{label()}</span>
      </Show>
      <FieldInput {...props} id={id} describedBy={describedBy()} />
      <span id={`${id}-help`} class="ask-note">
        {helpOf(props.field)}
      </span>
      <span id={`${id}-problem`} class="ask-problem" role="alert">
        {props.problem}
      </span>
    </div>
  );
}

function helpOf(field: FormField): string {
  const parts = [field.description === undefined ? "" : visibleProse(field.description)];
  if (field.pattern !== undefined) parts.push(`The agent expects the pattern ${visibleLine(field.pattern)}`);
  if (field.kind === "unknown") parts.push("The console cannot show this field; it is left out.");
  return parts.filter((it) => it !== "").join(" · ");
}

function FieldInput(props: FormRowProps & { id: string; describedBy: string }): JSX.Element {
  const inputTypes: Partial<Record<FormField["kind"], string>> = { email: "email", url: "url", date: "date", "date-time": "datetime-local" };
  const isNumber = (): boolean => props.field.kind === "number" || props.field.kind === "integer";
  const chosen = (): string[] => (Array.isArray(props.value) ? props.value : []);
  const common = (): JSX.InputHTMLAttributes<HTMLInputElement> => ({
    id: props.id,
    disabled: props.isDisabled,
    "aria-describedby": props.describedBy,
    "aria-invalid": props.problem !== undefined,
    "aria-required": props.field.isRequired,
  });
  return (
    <Switch
      fallback={
        <input
          {...common()}
          type={isNumber() ? "text" : (inputTypes[props.field.kind] ?? "text")}
          inputMode={isNumber() ? "decimal" : undefined}
          autocomplete="off"
          value={String(props.value)}
          onInput={(event) => props.onChange(event.currentTarget.value)}
        />
      }
    >
      <Match when={props.field.kind === "unknown"}>
        <input {...common()} type="text" disabled />
      </Match>
      <Match when={props.field.kind === "boolean"}>
        <input
          {...common()}
          aria-required={undefined}
          type="checkbox"
          checked={props.value === true}
          onChange={(event) => props.onChange(event.currentTarget.checked)}
        />
      </Match>
      <Match when={props.field.kind === "choice"}>
        <select
          id={props.id}
          disabled={props.isDisabled}
          aria-describedby={props.describedBy}
          aria-invalid={props.problem !== undefined}
          aria-required={props.field.isRequired}
          onChange={(event) => props.onChange(event.currentTarget.value)}
        >
          <option value="" selected={props.value === ""}>
            Choose…
          </option>
          <For each={props.field.choices}>
            {(choice) => (
              <option value={choice.value} selected={props.value === choice.value}>
                {visibleLine(choice.label)}
              </option>
            )}
          </For>
        </select>
      </Match>
      <Match when={props.field.kind === "choices"}>
        <For each={props.field.choices}>
          {(choice, index) => (
            <label class="ask-choice">
              <input
                type="checkbox"
                disabled={props.isDisabled}
                aria-invalid={index() === 0 && props.problem !== undefined}
                aria-describedby={props.describedBy}
                checked={chosen().includes(choice.value)}
                onChange={(event) => {
                  const others = chosen().filter((it) => it !== choice.value);
                  props.onChange(event.currentTarget.checked ? [...others, choice.value] : others);
                }}
              />
              {visibleLine(choice.label)}
            </label>
          )}
        </For>
      </Match>
    </Switch>
  );
}
