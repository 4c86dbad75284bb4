/** The page "Devices": the settings of this browser, and all devices that are signed in. */

import { createSignal, For, Show, type JSX } from "solid-js";
import { listDevices, renameDevice, revokeDevice, type Device } from "../../api/account";
import { errorText } from "../../api/client";
import { createReloading } from "../../state/reloading";
import { ConfirmDialog } from "../../ui/confirm-dialog";
import { Loaded } from "../../ui/loaded";
import "../../ui/page.css";
import { DeviceRow } from "./device-row";
import "./devices.css";
import { Notifications } from "./notifications";
import { ThisBrowser } from "./this-browser";

export default function DevicesPage(): JSX.Element {
  const [devices, reload] = createReloading(() => true, listDevices);
  const [problem, setProblem] = createSignal<string>();
  const [revoked, setRevoked] = createSignal<Device>();

  const change = async (action: () => Promise<unknown>): Promise<void> => {
    setProblem(undefined);
    await action().catch((error: unknown) => setProblem(errorText(error)));
    reload();
  };
  const confirmRevoke = (device: Device): void => {
    setRevoked(undefined);
    void change(() => revokeDevice(device.id));
  };
  const thisFirst = (all: Device[]): Device[] => all.toSorted((a, b) => Number(b.current) - Number(a.current));

  return (
    <div class="page devices">
      <h1>Devices</h1>
      <ThisBrowser />
      <Notifications />
      <h2>Signed in</h2>
      <div role="alert">
        <Show when={problem()}>{(text) => <p class="notice danger">{text()}</p>}</Show>
      </div>
      <Loaded resource={devices} onRetry={reload}>
        {(all) => (
          <Show when={all().length > 0} fallback={<p class="muted">No device is signed in.</p>}>
            <ul class="device-list">
              <For each={thisFirst(all())}>
                {(device) => (
                  <DeviceRow
                    device={device}
                    onRename={(name) => void change(() => renameDevice(device.id, name))}
                    onRevoke={() => setRevoked(device)}
                  />
                )}
              </For>
            </ul>
          </Show>
        )}
      </Loaded>
      <h2>Add a device</h2>
      <p>
        Run <code>jackfield console --pair</code> on the computer of the daemon and scan the QR code with the phone.{" "}
        <code>jackfield console</code> opens a browser on the same computer.
      </p>
      <ConfirmDialog
        isOpen={revoked() !== undefined}
        title={`Revoke “${revoked()?.name ?? ""}”?`}
        confirmLabel="Revoke"
        onCancel={() => setRevoked(undefined)}
        onConfirm={() => confirmRevoke(revoked() as Device)}
      >
        It is signed out at once, also in open pages. It can sign in again only with a new code.
      </ConfirmDialog>
    </div>
  );
}
