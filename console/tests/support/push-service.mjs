/**
 * A push service on loopback: it stores the messages of the daemon, decrypted as a browser does it (RFC 8291).
 *
 * Chromium subscribes only at the service of its vendor; so tests subscribe with these keys, and hand messages to the
 * service worker with the DevTools protocol.
 */

import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const SALT_BYTES = 16;
/** The salt, the size of records, and the length of the key that follows. */
const HEADER_BYTES = SALT_BYTES + 4 + 1;
const TAG_BYTES = 16;

export class PushService {
  #keys = createECDH("prime256v1");
  #secret = randomBytes(16);
  #server = createServer((request, response) => this.#receive(request, response));
  /** The texts of all messages. @type {string[]} */
  messages = [];
  /** What `PushSubscription.toJSON()` gives. */
  subscription = { endpoint: "", keys: { p256dh: "", auth: "" } };

  static async start() {
    const service = new PushService();
    await new Promise((resolve) => service.#server.listen(0, "127.0.0.1", () => resolve(undefined)));
    const { port } = /** @type {import("node:net").AddressInfo} */ (service.#server.address());
    const p256dh = service.#keys.generateKeys("base64url");
    service.subscription = { endpoint: `http://127.0.0.1:${port}/push`, keys: { p256dh, auth: service.#secret.toString("base64url") } };
    return service;
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async #receive(request, response) {
    const chunks = [];
    for await (const it of request) chunks.push(it);
    this.messages.push(this.#decrypt(Buffer.concat(chunks)));
    response.writeHead(201).end();
  }

  /** @param {Buffer} body one record with the encoding `aes128gcm` */
  #decrypt(body) {
    const salt = body.subarray(0, SALT_BYTES);
    const sender = body.subarray(HEADER_BYTES, HEADER_BYTES + (body[HEADER_BYTES - 1] ?? 0));
    const record = body.subarray(HEADER_BYTES + sender.length);
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.#keys.getPublicKey(), sender]);
    const key = hkdfSync("sha256", this.#keys.computeSecret(sender), this.#secret, info, 32);
    const derive = (/** @type {string} */ name, /** @type {number} */ length) =>
      Buffer.from(hkdfSync("sha256", Buffer.from(key), salt, `Content-Encoding: ${name}\0`, length));
    const cipher = createDecipheriv("aes-128-gcm", derive("aes128gcm", 16), derive("nonce", 12));
    cipher.setAuthTag(record.subarray(-TAG_BYTES));
    const padded = Buffer.concat([cipher.update(record.subarray(0, -TAG_BYTES)), cipher.final()]);
    return padded.subarray(0, padded.lastIndexOf(2)).toString();
  }
}
