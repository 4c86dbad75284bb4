/** The dialog with all keys of the console. */

import { For, type JSX } from "solid-js";
import { openDialog } from "../ui/open-dialog";
import "./keyboard-help.css";

const GROUPS: { title: string; keys: [string, string][] }[] = [
  {
    title: "Everywhere",
    keys: [
      ["g s", "Sessions"],
      ["g i", "Inbox"],
      ["g u", "Usage"],
      ["g a", "Agents"],
      ["g d", "Devices"],
      ["n", "New session"],
      ["?", "These keys"],
    ],
  },
  {
    title: "List of sessions",
    keys: [
      ["/", "Filter"],
      ["j k", "Next, previous session"],
      ["Enter", "Open the session; in the filter, go to the first one"],
      ["Escape", "Clear and leave the filter"],
    ],
  },
  {
    title: "Session",
    keys: [
      ["Ctrl+F", "Find in the whole session"],
      ["Home End", "First, latest event"],
      ["Escape Escape", "Cancel the running turn"],
    ],
  },
  { title: "Request of an agent", keys: [["1 … 9", "Choose an answer"], ["y n", "Allow, deny once"]] },
];

export const openKeyboardHelp = (): Promise<unknown> =>
  openDialog("Keys", (close) => (
    <>
      <For each={GROUPS}>{(it) => <KeyGroup {...it} />}</For>
      <div class="dialog-buttons">
        <button type="button" class="primary" onClick={() => close()}>
          Close
        </button>
      </div>
    </>
  ));

function KeyGroup(props: { title: string; keys: [string, string][] }): JSX.Element {
  return (
    <section class="key-group">
      <h3>{props.title}</h3>
      <dl>
        <For each={props.keys}>
          {([keys, meaning]) => (
            <div>
              <dt>
                <For each={keys.split(" ")}>{(it) => <kbd>{it}</kbd>}</For>
              </dt>
              <dd>{meaning}</dd>
            </div>
          )}
        </For>
      </dl>
    </section>
  );
}
