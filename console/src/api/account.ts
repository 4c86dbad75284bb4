/** The login of this browser, and the devices that are signed in. */

import { requestJson } from "./request";

/** What the daemon says about this login. */
export interface Me {
  version: string;
  /** The tenant that the login sees; `null` without tenants. */
  tenant: string | null;
  /** `null` if the login is not a device, but a token. */
  device: { id: string; name: string } | null;
  /** Whether the daemon is a gateway of a fleet. */
  fleet: boolean;
  operator: boolean;
}

export interface Device {
  id: string;
  name: string;
  /** `null` for the operator. */
  tenant: string | null;
  /** Unix milliseconds. */
  createdAt: number;
  /** Unix milliseconds, precise to an hour. */
  lastSeenAt: number;
  /** Whether this browser is the device. */
  current: boolean;
}

export const readMe = (): Promise<Me> => requestJson("GET", "/api/me");

/** Exchanges a one-time code for the cookie of this browser. */
export const signIn = (code: string, deviceName: string): Promise<Me> =>
  requestJson("POST", "/api/login", { body: { code, deviceName } });

export const signOut = (): Promise<void> => requestJson("POST", "/api/logout");

export const listDevices = async (): Promise<Device[]> =>
  (await requestJson<{ devices: Device[] }>("GET", "/api/devices")).devices;

const devicePath = (id: string): string => `/api/devices/${encodeURIComponent(id)}`;

export const renameDevice = (id: string, name: string): Promise<Device> =>
  requestJson("PATCH", devicePath(id), { body: { name } });

/** Signs a device out and closes its connections. */
export const revokeDevice = (id: string): Promise<void> => requestJson("DELETE", devicePath(id));
