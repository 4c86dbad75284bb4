//! Messages that are longer than a message may be: each is answered under its id, fails what waits for it, and is
//! named in the log.

use jackfield_e2e::{Client, Home};
use serde_json::{Value, json};
use std::fs;

const LIMIT: usize = 16 << 20;
const TOO_LARGE: i64 = -31019;

/// An agent whose prompts say which of its messages is too long.
const AGENT: &str = r#"
import json, sys
long = "x" * (17 << 20)
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params", {})
    if method == "initialize":
        send(id=asked["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        send(id=asked["id"], result={"sessionId": "a1"})
    elif method == "session/prompt":
        def say(text):
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            send(method="session/update", params={"sessionId": "a1", "update": update})
        wish = params["prompt"][0]["text"]
        if wish == "answer":
            send(id=asked["id"], result={"stopReason": "end_turn", "_meta": {"long": long}})
            continue
        if wish == "update":
            say(long)
        if wish == "request":
            call = {"toolCallId": "t", "title": long}
            send(id=77, method="session/request_permission", params={"sessionId": "a1", "toolCall": call, "options": []})
            answer = json.loads(sys.stdin.readline())
            say("answered %s %s" % (answer["id"], answer["error"]["code"]))
        send(id=asked["id"], result={"stopReason": "end_turn"})
"#;

fn connect(home: &Home) -> (Client, String) {
    let path = home.path().join("agent.py");
    fs::write(&path, AGENT).unwrap();
    let mut client = home.dial();
    let argv = ["python3", path.to_str().unwrap()];
    client.notify("_jackfield/connect", &json!({ "agent": { "name": "fake", "argv": argv } }));
    client.hello_aware();
    let session = client.open(home.path());
    (client, session)
}

fn left_out(client: &mut Client) -> Value {
    let notice = client.until("word of the lost message", |it| it["params"]["is"] == "leftOut");
    let event = &notice["params"];
    assert_eq!(event["limit"], LIMIT, "{event}");
    assert!(event["bytes"].as_u64().is_some_and(|it| (17 << 20) < it), "{event}");
    event["what"].clone()
}

#[test]
fn oversized_messages_of_an_agent_are_in_the_log_and_nothing_waits_for_them() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (mut client, session) = connect(&home);

    let prompt = client.send_prompt(&session, "answer");
    assert_eq!(left_out(&mut client), "an answer");
    let failed = client.answer(prompt);
    assert_eq!(failed["error"]["code"], TOO_LARGE, "{failed}");

    let prompt = client.send_prompt(&session, "update");
    assert_eq!(left_out(&mut client), "`session/update`");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");

    let prompt = client.send_prompt(&session, "request");
    assert_eq!(left_out(&mut client), "`session/request_permission`");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(client.text().contains(&format!("answered 77 {TOO_LARGE}")), "{}", client.text());
    daemon.stop();
}

/// Returns the size of the prompt that is answered as too large, and checks that the next is not.
pub(crate) fn check_prompts_of_every_size(client: &mut Client, session: &str) {
    let frame = |text: usize| {
        let prompt = json!([{ "type": "text", "text": "x".repeat(text) }]);
        json!({ "sessionId": session, "prompt": prompt })
    };
    // Room for the rest of the frame, and what is over the limit of a client and below others.
    for text in [LIMIT, 17 << 20, 30 << 20] {
        let answer = client.ask("session/prompt", &frame(text));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(answer["error"]["code"], TOO_LARGE, "{message}");
        assert!(message.contains(&LIMIT.to_string()), "{message}");
    }
    let answer = client.ask("session/prompt", &frame(LIMIT - 300));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{:.300}", answer.to_string());
    assert_eq!(client.prompt(session, "hello"), "end_turn");
}

#[test]
fn oversized_request_of_a_client_is_answered_under_its_id_and_the_next_one_works() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (mut client, session) = connect(&home);
    check_prompts_of_every_size(&mut client, &session);
    daemon.stop();
}
