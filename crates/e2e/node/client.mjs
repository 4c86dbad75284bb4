// Drives the official TypeScript SDK by lines of JSON: commands on stdin, what happens on stdout.
//
//   node client.mjs DIR        DIR holds the node_modules; the token is in JACKFIELD_TOKEN
//
//   {"do":"connect","over":"http","url":"http://…/acp"}   or "ws"
//   {"do":"request","id":1,"method":"…","params":{…}}      → {"id":1,"result":…} or {"id":1,"error":…}
//   {"do":"notify","method":"…","params":{…}}
//   {"do":"answer","ask":1,"result":{…}}                   answers {"ask":1,"params":…}
//   {"do":"close"}
//
// It also says {"update":…} for every session update, {"withdrawn":ASK} and {"closed":true}.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.argv[2], "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const acp = await load("@agentclientprotocol/sdk");
const { createHttpStream } = await load("@agentclientprotocol/sdk/experimental/http-client");
const { createWebSocketStream } = await load("@agentclientprotocol/sdk/experimental/ws-client");
const { default: WebSocket } = await load("ws");

const say = (it) => process.stdout.write(JSON.stringify(it) + "\n");
const headers = { Authorization: `Bearer ${process.env.JACKFIELD_TOKEN}` };
const asks = new Map();
let connection;

function connect({ over, url }) {
  const stream =
    over === "ws"
      ? createWebSocketStream(url.replace("http", "ws"), { headers, WebSocket, protocols: ["acp"] })
      : createHttpStream(url, { headers });
  const mine = acp
    .client({ name: "sdk-client" })
    .onNotification("session/update", ({ params }) => say({ update: params }))
    .onRequest("session/request_permission", ({ params, signal }) => {
      const ask = asks.size + 1;
      say({ ask, params });
      signal?.addEventListener("abort", () => say({ withdrawn: ask }));
      return new Promise((resolve) => asks.set(ask, resolve));
    })
    .connect(stream);
  mine.closed.finally(() => say({ closed: true }));
  connection = mine;
}

const failed = (error) => ({ code: error.code, message: String(error.message ?? error) });

const commands = {
  connect,
  request: ({ id, method, params }) =>
    connection.agent.request(method, params).then(
      (result) => say({ id, result: result ?? null }),
      (error) => say({ id, error: failed(error) }),
    ),
  notify: ({ method, params }) => connection.agent.notify(method, params),
  answer: ({ ask, result }) => asks.get(ask)(result),
  close: () => connection.close(),
};

say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  // Not awaited: a prompt takes as long as its turn, and is cancelled meanwhile.
  Promise.resolve(commands[command.do](command)).catch((error) => say({ failed: failed(error) }));
}
process.exit(0);
