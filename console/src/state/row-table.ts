/**
 * Rows by id, for components: who reads a row is updated when this row changes.
 *
 * A store of Solid would do the same, but replacing 10,000 rows in one takes longer than a page may.
 * Rows are plain objects that are replaced and never edited.
 */

import { createSignal, getListener, type Accessor, type Setter } from "solid-js";

export class RowTable<T extends object> {
  #rows = new Map<string, T>();
  readonly #signals = new Map<string, [Accessor<T | undefined>, Setter<T | undefined>]>();
  readonly #version = createSignal(0);
  /** The rows as an object, for reading. */
  readonly byId: Readonly<Record<string, T>>;

  constructor() {
    this.byId = new Proxy<Record<string, T>>({}, {
      get: (_, id) => (typeof id === "string" ? this.#read(id) : undefined),
      has: (_, id) => typeof id === "string" && this.#read(id) !== undefined,
      ownKeys: () => (this.version(), [...this.#rows.keys()]),
      getOwnPropertyDescriptor: (_, id) => {
        const value = typeof id === "string" ? this.#rows.get(id) : undefined;
        return value && { value, enumerable: true, configurable: true, writable: false };
      },
      set: () => false,
    });
  }

  /** A number that changes with each change of any row. */
  version = (): number => this.#version[0]();

  /** All rows. */
  all = (): T[] => {
    this.version();
    return [...this.#rows.values()];
  };

  /** Replaces all rows. */
  replace(rows: Iterable<[string, T]>): void {
    this.#rows = new Map(rows);
    this.#publish(this.#signals.keys());
  }

  update(changed: Iterable<[string, T]>, removed: Iterable<string>): void {
    const ids = new Set<string>();
    for (const [id, row] of changed) {
      this.#rows.set(id, row);
      ids.add(id);
    }
    for (const id of removed) {
      this.#rows.delete(id);
      ids.add(id);
    }
    this.#publish(ids);
  }

  #publish(ids: Iterable<string>): void {
    for (const id of ids) this.#signals.get(id)?.[1](() => this.#rows.get(id));
    this.#version[1]((it) => it + 1);
  }

  #read(id: string): T | undefined {
    if (!getListener()) return this.#rows.get(id);
    let signal = this.#signals.get(id);
    if (!signal) {
      signal = createSignal<T | undefined>(this.#rows.get(id));
      this.#signals.set(id, signal);
    }
    return signal[0]();
  }
}
