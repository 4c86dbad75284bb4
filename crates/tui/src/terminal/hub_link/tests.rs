//! The link against a scripted hub on a real socket.

use super::*;
use crate::hub::{AgentOverview, ConnectionState, LogRange, PromptDelivery, SettingValue};
use jackfield_transport::BlockingSocket;
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::Mutex,
    thread,
    time::Duration,
};
use tokio::time::timeout;

/// What the script does with a request: messages to send, and whether to close the connection.
#[derive(Default)]
struct ScriptedReply {
    messages: Vec<Value>,
    closes: bool,
}

type Script = dyn FnMut(&Value) -> ScriptedReply + Send;

/// A hub whose script sees the requests of all connections in order.
struct ScriptedHub {
    _dir: tempfile::TempDir,
    path: PathBuf,
    /// All requests except `initialize`.
    requests: Arc<Mutex<Vec<Value>>>,
}

impl DaemonAccess for PathBuf {
    fn dial(&self, _: DaemonStart) -> Result<Option<BlockingSocket>, String> {
        UnixStream::connect(self).map(|it| Some(it.into())).map_err(|it| it.to_string())
    }

    fn list_agents(&self) -> AgentOverview {
        AgentOverview::default()
    }
}

impl ScriptedHub {
    fn start(script: impl FnMut(&Value) -> ScriptedReply + Send + 'static) -> ScriptedHub {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (requests.clone(), Arc::new(Mutex::new(script)));
        // The threads end with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, script) = (seen.clone(), script.clone());
                thread::spawn(move || serve(&stream, &seen, &*script));
            }
        });
        ScriptedHub { _dir: dir, path, requests }
    }

    fn link(&self) -> (HubLink, mpsc::Receiver<HubUpdate>) {
        HubLink::start(Arc::new(self.path.clone()), Map::new(), 7)
    }

    fn requests_of(&self, method: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|it| it["method"] == method).map(|it| it["params"].clone()).collect()
    }
}

fn serve(stream: &UnixStream, seen: &Mutex<Vec<Value>>, script: &Mutex<Script>) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap();
        let reply = if request["method"] == "initialize" {
            answer(&request, &json!({}))
        } else {
            seen.lock().unwrap().push(request.clone());
            script.lock().unwrap()(&request)
        };
        for message in reply.messages {
            // The link may have closed the connection.
            let _sent = writeln!(writer, "{message}");
        }
        if reply.closes {
            break;
        }
    }
}

fn answer(request: &Value, result: &Value) -> ScriptedReply {
    let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    ScriptedReply { messages: vec![response], closes: false }
}

/// Answers of a hub that nothing happens in.
fn answer_idle(request: &Value) -> ScriptedReply {
    match request["method"].as_str().unwrap() {
        "_jackfield/watch" => answer(request, &json!({ "sessions": [], "asks": [] })),
        _ if request["id"].is_null() => ScriptedReply::default(),
        _ => answer(request, &json!({})),
    }
}

/// An event line as the hub writes it.
fn event(seq: u64, text: &str) -> Value {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    let frame = json!({ "jsonrpc": "2.0", "method": "session/update",
                        "params": { "sessionId": "s-1", "update": update } });
    let params =
        json!({ "sessionId": "s-1", "seq": seq, "at": 1, "is": "said", "turn": 1, "frame": frame });
    json!({ "jsonrpc": "2.0", "method": "_jackfield/event", "params": params })
}

async fn next(updates: &mut mpsc::Receiver<HubUpdate>) -> HubUpdate {
    timeout(Duration::from_secs(10), updates.recv()).await.expect("an update").unwrap()
}

/// Waits for an update that has a value.
async fn find<T>(
    updates: &mut mpsc::Receiver<HubUpdate>,
    mut pick: impl FnMut(HubUpdate) -> Option<T>,
) -> T {
    loop {
        if let Some(found) = pick(next(updates).await) {
            return found;
        }
    }
}

async fn outcome(updates: &mut mpsc::Receiver<HubUpdate>) -> (u64, Result<Value, String>) {
    find(updates, |it| match it {
        HubUpdate::Outcome { number, result } => Some((number.0, result)),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn followed_log_continues_after_a_lost_connection_without_gap_or_repeat() {
    let hub = ScriptedHub::start(|request| {
        if request["method"] != "_jackfield/attach" {
            return answer_idle(request);
        }
        let after = request["params"]["after"].as_u64().unwrap();
        let mut reply = answer(request, &json!({ "head": after + 2 }));
        let events = (after + 1..=after + 2).map(|it| event(it, "x"));
        reply.messages = events.chain(reply.messages).collect();
        // Twice the connection is lost: with the response, and before it.
        reply.closes = after < 9;
        if after == 7 {
            reply.messages.truncate(1);
        }
        reply
    });
    let (mut link, mut updates) = hub.link();
    link.send(RequestNumber(1), HubRequest::Follow { session: "s-1".into(), after: 5 });
    let mut seqs = Vec::new();
    while seqs.len() < 5 {
        if let HubUpdate::LogEvents { session, events } = next(&mut updates).await {
            assert_eq!(session, "s-1");
            seqs.extend(events.iter().map(|it| it.seq.unwrap().0));
        }
    }
    assert_eq!(seqs, [6, 7, 8, 9, 10]);
    let positions: Vec<Value> =
        hub.requests_of("_jackfield/attach").iter().map(|it| it["after"].clone()).collect();
    assert_eq!(positions, [5, 7, 8]);
}

#[tokio::test]
async fn lists_are_reported_again_after_a_lost_connection() {
    let mut watches = 0;
    let hub = ScriptedHub::start(move |request| {
        if request["method"] != "_jackfield/watch" {
            return answer_idle(request);
        }
        watches += 1;
        let rows = json!({ "sessions": [{ "sessionId": format!("s-{watches}") }], "asks": [] });
        let mut reply = answer(request, &rows);
        let changes = json!({ "sessions": [{ "sessionId": "s-9", "state": "working" }], "removed": ["s-1"],
                              "answered": [{ "sessionId": "s-1", "ask": 3, "by": "zed", "option": "ok" }] });
        reply
            .messages
            .push(json!({ "jsonrpc": "2.0", "method": "_jackfield/changes", "params": changes }));
        reply.closes = watches == 1;
        reply
    });
    let (_link, mut updates) = hub.link();
    let mut seen = Vec::new();
    while seen.len() < 6 {
        seen.push(match next(&mut updates).await {
            HubUpdate::Connection(ConnectionState::Connected) => "connected".to_owned(),
            HubUpdate::Connection(ConnectionState::Lost(why)) => why,
            HubUpdate::Lists { sessions, .. } => sessions[0].session_id.clone(),
            HubUpdate::Changes { sessions, removed, answered, .. } => {
                let by = answered[0].by.as_deref().unwrap();
                format!("{} {} {by} {}", sessions[0].session_id, removed[0], answered[0].number)
            }
            other => panic!("{other:?}"),
        });
    }
    let lost = "the hub closed the connection";
    assert_eq!(seen, ["connected", "s-1", "s-9 s-1 zed 3", lost, "connected", "s-2"]);
}

#[tokio::test]
async fn prompt_whose_connection_is_lost_is_sent_again_under_its_key() {
    let mut attempts = 0;
    let hub = ScriptedHub::start(move |request| {
        if request["method"] != "session/prompt" {
            return answer_idle(request);
        }
        attempts += 1;
        if attempts == 1 {
            return ScriptedReply { messages: Vec::new(), closes: true };
        }
        let key = request["params"]["_meta"]["jackfield"]["key"].as_str().unwrap().to_owned();
        ScriptedReply {
            messages: vec![event(4, "of another prompt"), event(5, &key)],
            closes: false,
        }
    });
    let (mut link, mut updates) = hub.link();
    let blocks = vec![json!({ "type": "text", "text": "fix it" })];
    let delivery = PromptDelivery::Steer;
    link.send(RequestNumber(3), HubRequest::Prompt { session: "s-1".into(), blocks, delivery });
    assert_eq!(outcome(&mut updates).await, (3, Ok(Value::Null)));
    let sent = hub.requests_of("session/prompt");
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
    assert_eq!(
        sent[0]["_meta"]["jackfield"],
        json!({ "key": "0000000000000007-3", "steer": true })
    );
}

#[tokio::test]
async fn refused_request_has_the_error_as_its_outcome() {
    let hub = ScriptedHub::start(|request| {
        if request["method"] != "_jackfield/answer" {
            return answer_idle(request);
        }
        let error = json!({ "code": -32600, "message": "request 2 of `s-1` is answered" });
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        ScriptedReply { messages: vec![response], closes: false }
    });
    let (mut link, mut updates) = hub.link();
    let (session, option) = ("s-1".to_owned(), "ok".to_owned());
    link.send(RequestNumber(1), HubRequest::AnswerOption { session, number: 2, option });
    let refused = Err("request 2 of `s-1` is answered".to_owned());
    assert_eq!(outcome(&mut updates).await, (1, refused));
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "ok" } });
    let expected = json!({ "sessionId": "s-1", "ask": 2, "result": result });
    assert_eq!(hub.requests_of("_jackfield/answer"), [expected]);
}

#[tokio::test]
async fn short_request_is_sent_again_if_the_kept_connection_was_closed() {
    let mut renames = 0;
    let hub = ScriptedHub::start(move |request| {
        if request["method"] == "_jackfield/rename" {
            renames += 1;
            if renames == 2 {
                return ScriptedReply { messages: Vec::new(), closes: true };
            }
        }
        answer_idle(request)
    });
    let (mut link, mut updates) = hub.link();
    for (number, name) in [(1, "one"), (2, " "), (3, "three")] {
        let (session, name) = ("s-1".to_owned(), name.to_owned());
        link.send(RequestNumber(number), HubRequest::RenameSession { session, name });
        assert_eq!(outcome(&mut updates).await, (number, Ok(json!({}))));
    }
    let names: Vec<Value> =
        hub.requests_of("_jackfield/rename").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, [json!("one"), Value::Null, Value::Null, json!("three")]);
}

#[tokio::test]
async fn page_of_a_log_counts_events_that_cannot_be_parsed() {
    let hub = ScriptedHub::start(|request| {
        if request["method"] != "_jackfield/read_log" {
            return answer_idle(request);
        }
        let deep = format!(r#"{{"seq":8,"at":1,"is":"said","frame":{}"#, "[".repeat(200));
        let lines = [7, 9].map(|seq| event(seq, "x")["params"].to_string());
        let lines = lines.map(|it| format!("{{{}", it.split_once(',').unwrap().1));
        let text = format!("{deep}\n{}\n{}\n", lines[0], lines[1]);
        answer(request, &json!({ "lines": text, "last": 40, "hasBefore": true, "hasAfter": true }))
    });
    let (mut link, mut updates) = hub.link();
    let range = LogRange::Before(10);
    let request = HubRequest::ReadLog { session: "s-1".into(), range, limit: 3 };
    link.send(RequestNumber(1), request);
    let page = find(&mut updates, |it| match it {
        HubUpdate::LogPage(page) => Some(page),
        _ => None,
    });
    let page = page.await;
    assert_eq!((page.bounds, page.end, page.events.len()), (Some((8, 9)), 40, 2));
    assert_eq!(page.events[0].session.as_deref(), Some("s-1"));
    let expected = json!({ "sessionId": "s-1", "limit": 3, "before": 10 });
    assert_eq!(hub.requests_of("_jackfield/read_log"), [expected]);
}

#[tokio::test]
async fn changed_setting_is_followed_by_the_settings() {
    let hub = ScriptedHub::start(|request| {
        if request["method"] != "_jackfield/settings" {
            return answer_idle(request);
        }
        let modes = json!({ "currentModeId": "code",
            "availableModes": [{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }] });
        answer(request, &json!({ "setup": { "modes": modes }, "mode": "code" }))
    });
    let (mut link, mut updates) = hub.link();
    let (session, value) = ("s-1".to_owned(), SettingValue::Mode("Plan".into()));
    link.send(RequestNumber(1), HubRequest::ChangeSetting { session, value });
    let offer = find(&mut updates, |it| match it {
        HubUpdate::Settings { settings, .. } => settings.mode,
        _ => None,
    });
    assert_eq!(offer.await.current.as_deref(), Some("code"));
    assert_eq!(outcome(&mut updates).await.0, 1);
    let expected = json!({ "sessionId": "s-1", "modeId": "plan" });
    assert_eq!(hub.requests_of("session/set_mode"), [expected]);
    let (session, value) = ("s-1".to_owned(), SettingValue::Mode("fast".into()));
    link.send(RequestNumber(2), HubRequest::ChangeSetting { session, value });
    let refused = "the agent has no `fast`: it offers plan, code".to_owned();
    assert_eq!(outcome(&mut updates).await, (2, Err(refused)));
}

#[tokio::test]
async fn requests_that_were_sent_are_finished_before_the_link_ends() {
    let hub = ScriptedHub::start(answer_idle);
    let (mut link, updates) = hub.link();
    for number in 1..=3 {
        let session = format!("s-{number}");
        link.send(RequestNumber(number), HubRequest::DeleteSession { session });
    }
    link.finish(updates).await;
    assert_eq!(hub.requests_of("session/delete").len(), 3);
}
