//! What the requests of a tenant may carry to an agent. This is a list of what is allowed: members,
//! values and notations that are not listed are refused, because the agent gets the same text and may
//! understand what the hub does not.

use super::{Tenant, server_url::check_url};
use crate::unique_json;
use jackfield_protocol::{
    Fault, Frame,
    acp::{Method, TenantRule},
};
use serde_json::{Map, Value};

/// The members that the params of a checked method may have.
fn allowed_members(method: Method) -> &'static [&'static str] {
    match method {
        // `unenforced` has no effect for tenants, see `on_connect`.
        Method::ControlConnect => {
            &["_meta", "agent", "cwd", "env", "startTimeoutMs", "unenforced", "variant"]
        }
        Method::SessionNew => &["_meta", "additionalDirectories", "cwd", "mcpServers"],
        _ => &["_meta", "additionalDirectories", "cwd", "mcpServers", "sessionId"],
    }
}

/// `_meta`: members, and what ACP reserves for the W3C trace context.
const META: [&str; 4] = ["jackfield", "traceparent", "tracestate", "baggage"];
/// `_meta.jackfield`: what hub, gateway and API read in requests.
const OUR_META: [&str; 13] = [
    "agent",
    "approve",
    "asks",
    "fingerprint",
    "ifUnused",
    "key",
    "labels",
    "opened",
    "run",
    "seq",
    "session",
    "start",
    "steer",
];
const SERVER: [&str; 5] = ["_meta", "headers", "name", "type", "url"];
const HEADER: [&str; 3] = ["_meta", "name", "value"];

/// For what is refused to tenants without `commands`, and for what is refused to every tenant.
const LEAVE_OUT: &str = "leave it out, or ask the operator for `commands = true`";
const AS_DEFINED: &str = "send it as ACP defines it";

/// Refuses what this tenant may not send to an agent, whatever session it is for.
pub(crate) fn check(tenant: &Tenant, method: &str, frame: &Frame) -> Result<(), Fault> {
    let malformed = |why: String| not_allowed(tenant, method, &why, AS_DEFINED);
    let refused = |why: String| not_allowed(tenant, method, &why, LEAVE_OUT);
    let checked = frame.known_method().filter(|it| it.row().tenant == TenantRule::Checked);
    if let Some(allowed) = checked.map(allowed_members) {
        let params = unique_json::parse(frame.params().unwrap_or("{}"));
        let params =
            params.map_err(|it| malformed(format!("the params cannot be checked: {it}")))?;
        let Value::Object(params) = params else {
            return Err(malformed("the params are no object".to_owned()));
        };
        for dir in directories(&params).map_err(malformed)? {
            inside(tenant, dir)?;
        }
        if !tenant.commands {
            check_members("params", &params, allowed).map_err(refused)?;
            check_servers(params.get("mcpServers")).map_err(refused)?;
            check_agent(&params).map_err(refused)?;
        }
    }
    if let Some(meta) = frame.meta().filter(|_| !tenant.commands) {
        let meta = unique_json::parse(meta);
        let meta = meta.map_err(|it| malformed(format!("`_meta` cannot be checked: {it}")))?;
        check_meta(&meta).map_err(refused)?;
    }
    Ok(())
}

/// `cwd` and `additionalDirectories`. Something that is no text is refused: an agent may read it as a
/// directory all the same.
fn directories(params: &Map<String, Value>) -> Result<Vec<&str>, String> {
    let cwd = params.get("cwd").filter(|it| !it.is_null());
    let more = match params.get("additionalDirectories") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(more)) => more,
        Some(_) => return Err("`additionalDirectories` is no array".to_owned()),
    };
    let directories = cwd.into_iter().chain(more);
    directories.map(|it| it.as_str().ok_or_else(|| "a directory is no text".to_owned())).collect()
}

/// Whether a tenant may work in a directory.
pub(crate) fn inside(tenant: &Tenant, dir: &str) -> Result<(), Fault> {
    if tenant.may_work_in(dir) {
        return Ok(());
    }
    let (name, roots) = (&tenant.name, &tenant.roots);
    let why = if roots.is_empty() {
        format!("tenant `{name}` has no `roots`: ask the operator for directories to work in")
    } else {
        let roots: Vec<_> = roots.iter().map(|it| format!("`{}`", it.display())).collect();
        format!("`{dir}` is not in {}, the roots of tenant `{name}`", roots.join(" or "))
    };
    Err(Fault::NotAllowed { why })
}

/// An agent is chosen by its name, without an environment.
fn check_agent(params: &Map<String, Value>) -> Result<(), String> {
    match params.get("agent") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => return Err("`agent` is a command line and not a name".to_owned()),
    }
    match params.get("env") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(env)) if env.is_empty() => Ok(()),
        Some(_) => Err("`env` sets the environment of an agent".to_owned()),
    }
}

fn check_servers(servers: Option<&Value>) -> Result<(), String> {
    match servers {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(servers)) => servers.iter().try_for_each(check_server),
        Some(_) => Err("`mcpServers` is no array".to_owned()),
    }
}

/// A server that is reached over HTTP at an address that is allowed.
fn check_server(server: &Value) -> Result<(), String> {
    let Value::Object(server) = server else {
        return Err("an entry of `mcpServers` is no object".to_owned());
    };
    if server.contains_key("command") {
        return Err("an MCP server with a `command` starts a program".to_owned());
    }
    check_members("an MCP server", server, &SERVER)?;
    if !matches!(server.get("type").and_then(Value::as_str), Some("http" | "sse")) {
        return Err("the `type` of an MCP server is neither `http` nor `sse`".to_owned());
    }
    if !server.get("name").is_some_and(Value::is_string) {
        return Err("the `name` of an MCP server is missing or no text".to_owned());
    }
    let Some(url) = server.get("url").and_then(Value::as_str) else {
        return Err("the `url` of an MCP server is missing or no text".to_owned());
    };
    check_url(url).map_err(|why| format!("the `url` of an MCP server cannot be used: {why}"))?;
    check_empty_meta(server)?;
    match server.get("headers") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(headers)) => headers.iter().try_for_each(check_header),
        Some(_) => Err("the `headers` of an MCP server are no array".to_owned()),
    }
}

fn check_header(header: &Value) -> Result<(), String> {
    let Value::Object(header) = header else {
        return Err("a header of an MCP server is no object".to_owned());
    };
    check_members("a header of an MCP server", header, &HEADER)?;
    check_empty_meta(header)?;
    let is_plain = |it: &Value| it.as_str().is_some_and(|it| !it.contains(char::is_control));
    if !["name", "value"].iter().all(|it| header.get(*it).is_some_and(is_plain)) {
        return Err("a header of an MCP server has no `name` and `value` of plain text".to_owned());
    }
    Ok(())
}

fn check_empty_meta(of: &Map<String, Value>) -> Result<(), String> {
    match of.get("_meta") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(meta)) if meta.is_empty() => Ok(()),
        Some(_) => Err("`_meta` of an MCP server is not empty".to_owned()),
    }
}

fn check_meta(meta: &Value) -> Result<(), String> {
    let meta = match meta {
        Value::Null => return Ok(()),
        Value::Object(meta) => meta,
        _ => return Err("`_meta` is no object".to_owned()),
    };
    check_members("`_meta`", meta, &META)?;
    let mut texts = meta.iter().filter(|(name, _)| *name != "jackfield");
    if let Some((name, _)) = texts.find(|(_, it)| !it.is_string()) {
        return Err(format!("`_meta.{name}` is no text"));
    }
    match meta.get("jackfield") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(members)) => check_members("`_meta.jackfield`", members, &OUR_META),
        Some(_) => Err("`_meta.jackfield` is no object".to_owned()),
    }
}

fn check_members(of: &str, members: &Map<String, Value>, allowed: &[&str]) -> Result<(), String> {
    match members.keys().find(|it| !allowed.contains(&it.as_str())) {
        Some(name) => Err(format!("{of} may not have the member `{name}`")),
        None => Ok(()),
    }
}

fn not_allowed(tenant: &Tenant, method: &str, why: &str, way_out: &str) -> Fault {
    let name = &tenant.name;
    Fault::NotAllowed { why: format!("`{method}` of tenant `{name}`: {why}; {way_out}") }
}
