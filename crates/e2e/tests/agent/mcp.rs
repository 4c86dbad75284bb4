//! MCP servers that an editor names when it opens a session: the reference server of MCP's makers, and
//! one that never answers.

use super::{
    Desk,
    script::{asks, choose, offered, results},
};
use jackfield_e2e::{cli::installed, wait_for};
use jackfield_test_support::{
    reference_mcp_server::ReferenceMcpServer,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn on_stdio() -> Value {
    let program = installed("bin/mcp-server-everything");
    json!({ "name": "ev", "command": program, "args": ["stdio"], "env": [] })
}

fn open(desk: &mut Desk<ScriptedModel>, servers: &Value) -> String {
    let new = json!({ "cwd": desk.home.path(), "mcpServers": servers });
    let new = desk.client.result("session/new", &new);
    new["sessionId"].as_str().unwrap().to_owned()
}

/// The model calls a tool of the server twice; the user allows it for good when asked the first time.
fn use_it(server: &Value) {
    let echo = |text: &str| Reply::call("ev_echo", &json!({ "message": text }).to_string());
    let model = ScriptedModel::start([echo("one"), echo("two"), Reply::say("Heard.")]);
    let mut desk = Desk::new(model, &[]);
    let session = open(&mut desk, &json!([server]));
    let turn = desk.client.send_prompt(&session, "Say something.");
    let ask = choose(&mut desk, "always");
    let call = &ask["toolCall"];
    assert_eq!((&call["title"], &call["kind"]), (&json!("ev.echo"), &json!("other")));
    assert_eq!(call["rawInput"], json!({ "message": "one" }));
    assert_eq!(ask["options"][1]["name"], "Always allow `mcp ev.echo` in this session");
    assert_eq!(desk.client.answer(turn)["result"]["stopReason"], "end_turn");
    assert_eq!(asks(&desk), 1);
    assert_eq!(desk.client.text(), "Heard.");

    let offered = offered(&desk.model);
    for name in ["read", "ev_echo", "mcp_read_resource"] {
        assert!(offered.iter().any(|it| it == name), "{name} is missing in {offered:?}");
    }
    assert_eq!(results(&desk.model), ["Echo: one", "Echo: two"]);
    let ends = desk.updates(&session).into_iter().filter(|it| it["status"] == "completed");
    let shown: Vec<Value> = ends.map(|it| it["content"][0]["content"]["text"].clone()).collect();
    assert_eq!(shown, ["Echo: one", "Echo: two"]);
    // Whoever leaves takes the servers along.
    desk.leave();
    wait_for("the server to be gone", Duration::from_secs(5), || {
        desk.home.alive(&[]).is_empty().then_some(())
    });
}

#[test]
fn a_tool_of_a_server_on_stdio_is_called_when_the_user_allows_it() {
    use_it(&on_stdio());
}

#[test]
fn a_tool_of_a_server_over_http_is_called_when_the_user_allows_it() {
    let env = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    let program = installed("bin/mcp-server-everything");
    let listening = ReferenceMcpServer::start(&program, "streamableHttp", env);
    let url = format!("http://127.0.0.1:{}/mcp", listening.port);
    use_it(&json!({ "type": "http", "name": "ev", "url": url, "headers": [] }));
}

#[test]
fn a_server_that_never_answers_costs_the_first_prompt_its_limit_and_nothing_more() {
    const LIMIT: Duration = Duration::from_secs(3);
    let model = ScriptedModel::start(["One.", "Two."].map(Reply::say));
    let limit = LIMIT.as_secs().to_string();
    let mut desk = Desk::new(model, &[("OPENAI_MCP_START_SECS", &limit)]);
    let capabilities = json!({ "session": { "notices": {} } });
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    desk.client.result("initialize", &hello);
    let stuck = json!({ "name": "stuck", "command": "/bin/sleep", "args": ["1000"], "env": [] });

    let begin = Instant::now();
    let session = open(&mut desk, &json!([stuck, on_stdio()]));
    assert!(begin.elapsed() < LIMIT, "the session waited for its servers");
    assert_eq!(desk.client.prompt(&session, "Hello."), "end_turn");
    let took = begin.elapsed();
    assert!(LIMIT <= took && took < LIMIT * 4, "{took:?}");
    let updates = desk.updates(&session);
    let notices = updates.iter().filter(|it| it["sessionUpdate"] == "notice");
    let notices: Vec<&str> = notices.map(|it| it["title"].as_str().unwrap()).collect();
    let why = "The MCP server `stuck` did not answer within 3 s and was ended. The session goes on \
               without its tools; to try again, start a new one.";
    assert_eq!(notices, [why]);
    assert!(offered(&desk.model).iter().any(|it| it == "ev_echo"), "the other server is there");

    let begin = Instant::now();
    assert_eq!(desk.client.prompt(&session, "Again."), "end_turn");
    assert!(begin.elapsed() < LIMIT, "the second prompt does not wait");
    assert_eq!(desk.updates(&session).iter().filter(|it| it["title"] == why).count(), 1);
    desk.client.result("session/close", &json!({ "sessionId": session }));
    let agent = desk.child.id();
    wait_for("the servers to be gone", Duration::from_secs(10), || {
        desk.home.alive(&[agent]).is_empty().then_some(())
    });
}

#[test]
fn a_server_that_ends_at_once_is_told_also_to_a_client_that_knows_no_notices() {
    let mut desk = Desk::new(ScriptedModel::start([Reply::say("Hello.")]), &[]);
    let script = "echo no token >&2; exit 3";
    let broken = json!({ "name": "gone", "command": "/bin/sh", "args": ["-c", script], "env": [] });
    let session = open(&mut desk, &json!([broken]));
    assert_eq!(desk.turn(&session, "Hello."), ("Hello.".to_owned(), "end_turn".to_owned()));
    let updates = desk.updates(&session);
    let thoughts = updates.iter().filter(|it| it["sessionUpdate"] == "agent_thought_chunk");
    let told: String = thoughts.filter_map(|it| it["content"]["text"].as_str()).collect();
    let why = "The MCP server `gone` could not be started: it ended during the start";
    assert!(told.starts_with(why) && told.contains("no token"), "{told}");
}
