//! What `run` tells as it happens is what the log tells afterwards, to the last line.

use crate::home::Home;
use jackfield_events::ReceivedEvent;
use jackfield_views::{AgentEvents, Envelopes};
use serde::Serialize;
use serde_json::{Value, json};

/// An agent of a few lines of shell: it thinks, works, plans, asks, speaks, and speaks on after the
/// end of its turn.
const AGENT: &str = r#"
say() { echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"one\",\"update\":{\"sessionUpdate\":$1}}}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1}}" ;;
    *'"session/new"'*)
      say '"available_commands_update","availableCommands":[]'
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"one\"}}" ;;
    *'"session/prompt"'*)
      prompt=$id
      say '"agent_thought_chunk","content":{"type":"text","text":"Hm."}'
      say '"tool_call","toolCallId":"t1","title":"Look","kind":"read","status":"pending","rawInput":{"path":"/x"}'
      say '"plan","entries":[{"content":"look","priority":"low","status":"completed"}]'
      echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"one","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}' ;;
    *'"optionId":"y"'*)
      say '"tool_call_update","toolCallId":"t1","status":"completed"'
      say '"agent_message_chunk","content":{"type":"text","text":"I hear "}'
      say '"agent_message_chunk","content":{"type":"text","text":"you."}'
      echo "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\"}}" ;;
  esac
done"#;

/// The facts of a session, out of its whole archive.
fn facts(home: &Home, session: &str) -> Vec<Value> {
    let export = home.run(&["sessions", "export", "--raw", session]);
    assert_eq!(export.code, 0, "{}", export.stderr);
    let lines = export.stdout.lines().map(|it| serde_json::from_str(it).unwrap());
    let facts = lines.filter(|it: &Value| it["is"].is_string());
    let address = |mut it: Value| {
        it["sessionId"] = json!(session);
        it
    };
    facts.map(address).collect()
}

fn lines(told: &[impl Serialize]) -> String {
    told.iter().map(|it| serde_json::to_string(it).unwrap() + "\n").collect()
}

#[test]
fn a_run_tells_what_the_log_tells() {
    let home = Home::new();
    home.program("talker", AGENT);
    for format in ["events", "envelopes"] {
        let args = ["run", "-i", "--approve", "all", "--format", format, "--", "talker"];
        let did = home.run_with_input(&args, "one\ntwo\n");
        assert_eq!((did.code, did.stderr.as_str()), (0, ""));
        let listed = home.run(&["sessions", "list", "--format", "quiet"]).stdout;
        let facts = facts(&home, listed.lines().next().unwrap());
        assert_eq!(facts.iter().filter(|it| it["is"] == "said").count(), 13);
        // The command leaves with the end of the last turn, and closes the session then.
        let session = facts[0]["sessionId"].as_str().unwrap().to_owned();
        let facts = facts.into_iter().filter(|it| it["is"] != "closed");
        let facts: Vec<ReceivedEvent> =
            facts.map(|it| ReceivedEvent::from_value(it).unwrap()).collect();
        let told = if format == "events" {
            let mut events = AgentEvents::default();
            lines(&facts.iter().flat_map(|it| events.fold(it)).collect::<Vec<_>>())
        } else {
            let mut envelopes = Envelopes::new(&session);
            lines(&facts.iter().flat_map(|it| envelopes.fold(it)).collect::<Vec<_>>())
        };
        assert_eq!(did.stdout, told);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}
