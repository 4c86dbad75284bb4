/** Tests of the MCP servers of a new session. */

import { expect, test } from "vitest";
import { toMcpServers } from "./mcp-servers";

test("names and the form of .mcp.json become one list", () => {
  const json = JSON.stringify({
    mcpServers: {
      files: { command: "mcp-files", args: ["--ro"], env: { ROOT: "/x" } },
      search: { type: "http", url: "https://mcp.example.org", headers: { Authorization: "Bearer x" } },
    },
  });
  expect(toMcpServers(["github"], json)).toEqual({
    servers: [
      "github",
      { name: "files", command: "mcp-files", args: ["--ro"], env: [{ name: "ROOT", value: "/x" }] },
      { type: "http", name: "search", url: "https://mcp.example.org", headers: [{ name: "Authorization", value: "Bearer x" }] },
    ],
  });
});

test("the member mcpServers may be left out, and nothing chosen is nothing sent", () => {
  expect(toMcpServers([], '{"a":{"command":"a"}}').servers).toEqual([{ name: "a", command: "a", args: [], env: [] }]);
  expect(toMcpServers([], " ")).toEqual({});
});

test("what cannot be used is explained", () => {
  expect(toMcpServers([], "{").problem).toMatch("not JSON");
  expect(toMcpServers([], "7").problem).toMatch("member per server");
  expect(toMcpServers([], '{"a":{"args":[]}}').problem).toMatch("“a”");
});
