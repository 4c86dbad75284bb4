// A run, streamed: node stream.mjs AGENT MESSAGE
import { Jackfield } from "jackfield-client";

const [agentId, message = "Say hello."] = process.argv.slice(2);
const { JACKFIELD_URL: url = "http://127.0.0.1:7456", JACKFIELD_TOKEN: token } = process.env;

for await (const { event, data } of new Jackfield({ url, token }).run({ agentId, message })) {
  if (event === "agent" && data.type === "text_delta") process.stdout.write(data.delta);
  if (event === "end") console.log(`\n${data.status}`);
}
