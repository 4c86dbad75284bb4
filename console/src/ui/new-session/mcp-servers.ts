/** The MCP servers of a new session: configured ones by name, and others as JSON in the form of `.mcp.json`. */

type Json = Record<string, unknown>;

const isObject = (it: unknown): it is Json => typeof it === "object" && it !== null && !Array.isArray(it);

/** The value of `mcpServers` in a request, or why the JSON cannot be used; nothing if no server is chosen. */
export function toMcpServers(names: readonly string[], json: string): { servers?: unknown[]; problem?: string } {
  const others = json.trim() === "" ? [] : parseServers(json);
  if (typeof others === "string") return { problem: others };
  const servers = [...names, ...others];
  return servers.length === 0 ? {} : { servers };
}

/** The servers in the form of ACP, or what is wrong. */
function parseServers(json: string): unknown[] | string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
  if (Array.isArray(value)) return value;
  const byName = isObject(value) && isObject(value["mcpServers"]) ? value["mcpServers"] : value;
  if (!isObject(byName)) return "Expected an object with a member per server, as in .mcp.json.";
  const servers: unknown[] = [];
  for (const [name, server] of Object.entries(byName)) {
    const isServer = isObject(server) && (typeof server["command"] === "string" || typeof server["url"] === "string");
    if (!isServer) return `The server “${name}” has neither a command nor a url.`;
    servers.push(toAcp(name, server));
  }
  return servers;
}

function toAcp(name: string, server: Json): Json {
  const pairs = (it: unknown): Json[] => Object.entries(isObject(it) ? it : {}).map(([key, value]) => ({ name: key, value: String(value) }));
  if (typeof server["url"] === "string") {
    return { type: server["type"] === "sse" ? "sse" : "http", name, url: server["url"], headers: pairs(server["headers"]) };
  }
  return { name, command: server["command"], args: Array.isArray(server["args"]) ? server["args"] : [], env: pairs(server["env"]) };
}
