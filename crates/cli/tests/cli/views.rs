//! The events and envelopes that `run` prints are the same as those of the log.

use crate::home::TestHome;
use jackfield_events::ReceivedEvent;
use jackfield_views::{AgentEventView, EnvelopeView};
use serde::Serialize;
use serde_json::{Value, json};

/// An agent as a shell script: it sends thoughts, tool calls, a plan, a permission request and messages.
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

/// The events of a session, read from an export.
fn read_events(home: &TestHome, session: &str) -> Vec<Value> {
    let export = home.run(&["sessions", "export", "--raw", session]);
    assert_eq!(export.code, 0, "{}", export.stderr);
    let lines = export.stdout.lines().map(|it| serde_json::from_str(it).unwrap());
    let events = lines.filter(|it: &Value| it["is"].is_string());
    let add_session_id = |mut it: Value| {
        it["sessionId"] = json!(session);
        it
    };
    events.map(add_session_id).collect()
}

fn to_lines(values: &[impl Serialize]) -> String {
    values.iter().map(|it| serde_json::to_string(it).unwrap() + "\n").collect()
}

#[test]
fn run_prints_the_same_views_as_the_log() {
    let home = TestHome::new();
    home.write_program("talker", AGENT);
    for format in ["events", "envelopes", "envelopes+"] {
        let args = ["run", "-i", "--approve", "all", "--format", format, "--", "talker"];
        let outcome = home.run_with_input(&args, "one\ntwo\n");
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        let listed = home.run(&["sessions", "list", "--format", "quiet"]).stdout;
        let events = read_events(&home, listed.lines().next().unwrap());
        assert_eq!(events.iter().filter(|it| it["is"] == "said").count(), 13);
        // The command exits at the end of the last turn, before the session is closed.
        let session = events[0]["sessionId"].as_str().unwrap().to_owned();
        let events = events.into_iter().filter(|it| it["is"] != "closed");
        let events: Vec<ReceivedEvent> =
            events.map(|it| ReceivedEvent::from_value(it).unwrap()).collect();
        let printed = if format == "events" {
            let mut agent_events = AgentEventView::default();
            to_lines(&events.iter().flat_map(|it| agent_events.fold_event(it)).collect::<Vec<_>>())
        } else {
            let envelopes = EnvelopeView::new(&session);
            let has_additions = format == "envelopes+";
            let mut envelopes = if has_additions { envelopes.with_additions() } else { envelopes };
            assert_eq!(outcome.stdout.contains("permission-"), has_additions, "{}", outcome.stdout);
            to_lines(&events.iter().flat_map(|it| envelopes.fold_event(it)).collect::<Vec<_>>())
        };
        assert_eq!(outcome.stdout, printed);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}
