/** The files of the next prompt, with previews of images and the progress of their upload. */

import { For, Match, Show, Switch, type JSX } from "solid-js";
import { visibleLine } from "../../../ui/visible-text";
import type { Uploads } from "./uploads";

export function AttachmentList(props: { uploads: Uploads }): JSX.Element {
  return (
    <Show when={props.uploads.attachments.length > 0}>
      <ul class="attachments" aria-label="Files of the prompt">
        <For each={props.uploads.attachments}>
          {(file) => (
            <li class="attachment" classList={{ "is-failed": file.status === "failed" }}>
              <Show when={file.previewUrl}>{(url) => <img class="attachment-preview" src={url()} alt="" />}</Show>
              <span class="attachment-text">
                <span class="attachment-name">{visibleLine(file.name)}</span>
                <span class="attachment-state">
                  <Switch>
                    <Match when={file.status === "uploading"}>
                      <progress value={file.progress} aria-label={`Upload of ${visibleLine(file.name)}`} />
                    </Match>
                    <Match when={file.status === "failed"}>Not uploaded: {file.problem}</Match>
                    <Match when={file.status === "ready"}>{formatSize(file.size)}</Match>
                  </Switch>
                </span>
              </span>
              <button type="button" class="quiet" aria-label={`Remove ${visibleLine(file.name)}`} onClick={() => props.uploads.remove(file.id)}>
                ×
              </button>
            </li>
          )}
        </For>
      </ul>
    </Show>
  );
}

function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [value, unit] = bytes < 1024 * 1024 ? [bytes / 1024, "kB"] : [bytes / (1024 * 1024), "MB"];
  return `${value.toFixed(1)} ${unit}`;
}
