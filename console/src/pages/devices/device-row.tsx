/** One device in the list: its name, which can be changed, and the button that signs it out. */

import { createSignal, Show, type JSX } from "solid-js";
import type { Device } from "../../api/account";
import { TimeAgo } from "../../ui/time-ago";
import { visibleLine } from "../../ui/visible-text";

interface DeviceRowProps {
  device: Device;
  onRename(name: string): void;
  onRevoke(): void;
}

export function DeviceRow(props: DeviceRowProps): JSX.Element {
  const [isEdited, setEdited] = createSignal(false);
  return (
    <li class="device">
      <Show
        when={isEdited()}
        fallback={
          <>
            <DeviceDescription device={props.device} />
            <div class="device-actions">
              <button type="button" aria-label={`Rename ${props.device.name}`} onClick={() => setEdited(true)}>
                Rename
              </button>
              <Show when={!props.device.current}>
                <button type="button" class="danger" aria-label={`Revoke ${props.device.name}`} onClick={() => props.onRevoke()}>
                  Revoke
                </button>
              </Show>
            </div>
          </>
        }
      >
        <RenameForm
          name={props.device.name}
          onCancel={() => setEdited(false)}
          onRename={(name) => {
            setEdited(false);
            if (name !== props.device.name) props.onRename(name);
          }}
        />
      </Show>
    </li>
  );
}

function DeviceDescription(props: { device: Device }): JSX.Element {
  return (
    <div class="device-text">
      <strong>{visibleLine(props.device.name)}</strong>
      <Show when={props.device.current}>
        {" "}
        <span class="badge">this device</span>
      </Show>
      <p class="muted">
        <Show when={props.device.tenant}>{(tenant) => <>tenant {tenant()} · </>}</Show>
        signed in <TimeAgo at={props.device.createdAt} />
        <Show when={!props.device.current}>
          {" "}
          · last seen <TimeAgo at={props.device.lastSeenAt} />
        </Show>
      </p>
    </div>
  );
}

function RenameForm(props: { name: string; onRename(name: string): void; onCancel(): void }): JSX.Element {
  let input!: HTMLInputElement;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = input.value.trim();
    if (name !== "") props.onRename(name);
  };
  const focus = (element: HTMLInputElement): void => {
    input = element;
    queueMicrotask(() => element.select());
  };
  return (
    <form class="device-rename" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && props.onCancel()}>
      <input ref={focus} aria-label="Name of the device" maxlength={64} required value={props.name} />
      <button type="submit" class="primary">
        Save
      </button>
      <button type="button" onClick={() => props.onCancel()}>
        Cancel
      </button>
    </form>
  );
}
