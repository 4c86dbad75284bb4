/** The directory of a new session: typed, one of the recent ones, or browsed inside of the permitted directories. */

import type { DirectoryList } from "jackfield-client";
import { For, Show, createSignal, createUniqueId, type JSX } from "solid-js";
import { api, errorText } from "../../api/client";
import { visibleLine } from "../visible-text";

interface DirectoryFieldProps {
  value: string;
  recent: string[];
  onChange(path: string): void;
}

export function DirectoryField(props: DirectoryFieldProps): JSX.Element {
  const listId = createUniqueId();
  const [listing, setListing] = createSignal<DirectoryList>();
  const [problem, setProblem] = createSignal("");

  const browse = async (path: string): Promise<void> => {
    try {
      setListing(await api.directories(path === "" ? {} : { path }));
      setProblem("");
    } catch (error) {
      setProblem(errorText(error));
      // A typed directory that cannot be listed: start at the permitted ones.
      if (path !== "" && listing() === undefined) await browse("");
    }
  };
  const choose = (path: string): void => {
    props.onChange(path);
    void browse(path);
  };
  const toggle = (): void => {
    if (listing() !== undefined) setListing(undefined);
    else void browse(props.value);
  };

  return (
    <div class="directory-field">
      <label>
        Directory
        <input
          type="text"
          list={listId}
          value={props.value}
          placeholder="/path/to/project"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => props.onChange(event.currentTarget.value)}
        />
      </label>
      <datalist id={listId}>
        <For each={props.recent}>{(path) => <option value={path} />}</For>
      </datalist>
      <button type="button" aria-expanded={listing() !== undefined} onClick={toggle}>
        Browse
      </button>
      <Show when={listing()}>
        {(it) => (
          <div class="directory-list" role="group" aria-label="Directories">
            <For each={it().path ? [] : it().roots}>{(path) => <DirectoryButton name={path} onClick={() => choose(path)} />}</For>
            <Show when={it().path}>
              <DirectoryButton name=".." onClick={() => (it().parent ? choose(it().parent ?? "") : void browse(""))} />
            </Show>
            <For each={it().path ? it().directories : []}>
              {(directory) => <DirectoryButton name={directory.name} isRepository={directory.isRepository} onClick={() => choose(directory.path)} />}
            </For>
            <Show when={it().path && it().directories.length === 0}>
              <span class="muted">No directories inside.</span>
            </Show>
            <Show when={it().hasMore}>
              <span class="muted">There are more: type the path.</span>
            </Show>
          </div>
        )}
      </Show>
      <p class="dialog-problem" role="alert">
        {problem()}
      </p>
    </div>
  );
}

function DirectoryButton(props: { name: string; isRepository?: boolean; onClick(): void }): JSX.Element {
  return (
    <button type="button" class="quiet directory-item" onClick={() => props.onClick()}>
      {visibleLine(props.name)}
      <Show when={props.isRepository}>
        <span class="muted"> git</span>
      </Show>
    </button>
  );
}
