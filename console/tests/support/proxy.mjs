/** A TCP proxy in front of the daemon, which can be cut: open connections end, and new ones are refused or hang. */

import { createServer, connect } from "node:net";

export class Proxy {
  #server = createServer((client) => this.#accept(client));
  /** @type {Set<import("node:net").Socket>} */
  #sockets = new Set();
  /** The last GET of each connection. @type {Map<import("node:net").Socket, string>} */
  #requests = new Map();
  /** @type {"open" | "cut" | "silent"} */
  #mode = "open";
  #target = 0;
  port = 0;

  /** @param {number} target the port of the daemon */
  static async start(target) {
    const proxy = new Proxy();
    proxy.#target = target;
    await new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve(undefined)));
    proxy.port = /** @type {import("node:net").AddressInfo} */ (proxy.#server.address()).port;
    return proxy;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** @param {import("node:net").Socket} client */
  #accept(client) {
    this.#keep(client);
    if (this.#mode === "cut") return client.destroy();
    if (this.#mode === "silent") return undefined;
    const server = this.#keep(connect(this.#target, "127.0.0.1"));
    client.on("data", (data) => {
      const target = /^GET (\S+)/.exec(data.toString("latin1", 0, 200))?.[1];
      if (target) this.#requests.set(client, target);
      if (this.#mode === "open") server.write(data);
    });
    server.on("data", (data) => this.#mode === "open" && client.write(data));
    client.on("close", () => server.destroy());
    server.on("close", () => this.#mode === "open" && client.destroy());
    return undefined;
  }

  /** @param {import("node:net").Socket} socket */
  #keep(socket) {
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#requests.delete(socket);
    });
    socket.on("error", () => socket.destroy());
    return socket;
  }

  /** The targets of open requests for the stream of changes. */
  openStreams() {
    return [...this.#requests.values()].filter((it) => it.startsWith("/api/events"));
  }

  /** Ends all connections and refuses new ones. */
  cut() {
    this.#mode = "cut";
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Forwards nothing any more, without closing anything: as when a cable is pulled. */
  silence() {
    this.#mode = "silent";
  }

  restore() {
    this.#mode = "open";
    for (const socket of this.#sockets) socket.destroy();
  }

  async close() {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
