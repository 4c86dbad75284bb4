/** The last known list of sessions, stored in this browser, so that it can be shown without a connection. */

import type { Session } from "jackfield-client";

export interface LastList {
  /** Unix milliseconds. */
  savedAt: number;
  sessions: Session[];
}

/** The sessions that were active last are stored. */
const SESSIONS_MAX = 500;
const DATABASE = "jackfield";
const STORE = "lists";
const KEY = "sessions";

export async function saveLastList(sessions: readonly Session[]): Promise<void> {
  const latest = sessions.toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt)).slice(0, SESSIONS_MAX);
  const list: LastList = { savedAt: Date.now(), sessions: latest };
  await useStore("readwrite", (store) => store.put(list, KEY));
}

export const loadLastList = (): Promise<LastList | undefined> => useStore<LastList | undefined>("readonly", (store) => store.get(KEY));

export async function deleteLastList(): Promise<void> {
  await useStore("readwrite", (store) => store.delete(KEY));
}

async function useStore<T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await openDatabase();
  try {
    return await toPromise(use(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return toPromise(request);
}

function toPromise<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the database of the browser failed"));
  });
}
