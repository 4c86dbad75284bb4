/** The login of this browser, and the devices that are signed in. */

import type { Device, Me } from "jackfield-client";
import { api } from "./client";

export type { Device, Me };

export const readMe = (): Promise<Me> => api.me();

/** Exchanges a one-time code for the cookie of this browser. */
export const signIn = (code: string, deviceName: string): Promise<Me> => api.logins.logIn(code, deviceName);

export const signOut = (): Promise<void> => api.logins.logOut();

export const listDevices = (): Promise<Device[]> => api.devices.list();

export const renameDevice = (id: string, name: string): Promise<Device> => api.devices.rename(id, name);

/** Signs a device out and closes its connections. */
export const revokeDevice = (id: string): Promise<void> => api.devices.revoke(id);
