//! The agent is killed at any moment of a turn, again and again. What the next process has of the
//! conversation is always a beginning of it, with all that was heard to be done before the last answer,
//! and the model accepts it.

use super::{Desk, must_be_sound, seen::seen};
use jackfield_test_support::{
    rng::Rng,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs, thread,
    time::{Duration, Instant},
};

/// Kills in CI, and under which seed; `AGENT_KILLS` and `AGENT_KILL_SEED` say otherwise.
/// Enough to meet several moments of a turn.
const KILLS_GATE: u64 = 40;
const KILLS_NIGHTLY: u64 = 200;
const SEED: u64 = 1;
/// So many kills hit one session before the next one is begun: each loads all of it.
const KILLS_PER_SESSION: u64 = 20;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between the pieces of an answer, so that a kill can come between them too.
const PIECE: Duration = Duration::from_micros(500);

/// What a turn consists of when nobody is killed: what it is, and the answer that it belongs to.
const WHOLE: [(&str, usize); 8] = [
    ("user_message_chunk", 0),
    ("agent_message_chunk", 1),
    ("read", 1),
    ("glob", 1),
    ("write", 2),
    ("todo", 3),
    ("plan", 3),
    ("agent_message_chunk", 4),
];
const LOOKS: &str = "I look first.";
const ENDS: &str = "That is all.";

fn a_turn(number: u64) -> [Reply; 4] {
    let call = |index: u64, name: &str, arguments: &Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        // Ids that come again in every turn, as some servers have it.
        json!({ "index": index, "id": format!("c{index}"), "type": "function", "function": function })
    };
    let one = |call: Value| {
        Reply::stream().delta(&json!({ "tool_calls": [call] })).pause(PIECE).finish("tool_calls")
    };
    let mut looks = Reply::stream();
    for word in LOOKS.split_inclusive(' ') {
        looks = looks.delta(&json!({ "content": word })).pause(PIECE);
    }
    let read = call(0, "read", &json!({ "path": "a.txt" }));
    let glob = call(1, "glob", &json!({ "pattern": "*.txt" }));
    let looks = looks.delta(&json!({ "tool_calls": [read] })).pause(PIECE);
    let looks = looks.delta(&json!({ "tool_calls": [glob] })).finish("tool_calls");
    let write = json!({ "path": "b.txt", "content": format!("{number}\n") });
    let todo = json!({ "todos": [{ "content": format!("Turn {number}"), "status": "completed" }] });
    [looks, one(call(0, "write", &write)), one(call(0, "todo", &todo)), Reply::say(ENDS)]
}

fn name_of(item: &Value) -> &str {
    let name = if item["is"] == "tool" { &item["name"] } else { &item["is"] };
    name.as_str().unwrap()
}

fn place_of(name: &str, text: Option<&str>) -> usize {
    let is_last = text.is_some_and(|it| !LOOKS.starts_with(it));
    let places: Vec<usize> = (0..WHOLE.len()).filter(|it| WHOLE[*it].0 == name).collect();
    if is_last { *places.last().unwrap() } else { places[0] }
}

/// What was heard of a turn before its process was killed.
#[derive(Default)]
struct Heard {
    updates: Vec<Value>,
    /// How long it took, if it ended.
    took: Option<Duration>,
}

/// Fails unless `kept` is what may be left of a turn of which this was heard.
fn must_fit(kept: &[Value], heard: &Heard, text: &str) {
    let told = || format!("kept {kept:#?}\nheard {:#?}", heard.updates);
    let names: Vec<&str> = kept.iter().map(name_of).collect();
    let whole: Vec<&str> = WHOLE.iter().map(|it| it.0).collect();
    assert!(whole.starts_with(&names), "no beginning of the turn: {}", told());
    let texts: Vec<&str> = kept.iter().filter_map(|it| it["text"].as_str()).collect();
    assert!([text, LOOKS, ENDS].starts_with(&texts), "half an answer: {}", told());
    assert!(heard.took.is_none() || names.len() == whole.len(), "the end is lost: {}", told());

    let live = seen(&heard.updates);
    // The last answer that anything was heard of; all before it is done.
    let reached = live.iter().map(|it| WHOLE[place_of(name_of(it), it["text"].as_str())].1).max();
    let reached = reached.unwrap_or(0);
    let enough = WHOLE.iter().filter(|it| it.1 < reached).count();
    assert!(enough <= kept.len(), "less than was heard: {}", told());
    let last = kept.len().checked_sub(1).map_or(0, |it| WHOLE[it].1);
    for (item, (name, answer)) in kept.iter().zip(&WHOLE) {
        if item["is"] == "tool" {
            let is_done = item["status"] == "completed";
            assert!(is_done || *answer == last, "{name} was never done: {}", told());
        }
    }
    for call in live.iter().filter(|it| it["is"] == "tool") {
        let same = kept.iter().find(|it| it["toolCallId"] == call["toolCallId"]);
        let has_begun = call.get("status").is_some();
        assert!(same.is_some() || !has_begun, "it ran and nobody knows: {call} {}", told());
        if call["status"] == "completed" && same.is_some_and(|it| it["status"] == "completed") {
            assert_eq!(same.unwrap(), call);
        }
    }
}

impl Desk<ScriptedModel> {
    /// A session in which nobody is asked whether a file may be written.
    fn open_to_edit(&mut self) -> String {
        let session = self.open();
        let edit = json!({ "sessionId": session, "modeId": "edit" });
        self.client.result("session/set_mode", &edit);
        session
    }

    fn load(&mut self, session: &str) -> Vec<Value> {
        let place = self.place(session);
        self.client.result("session/load", &place);
        seen(&self.updates(session))
    }

    /// One turn, killed after a while; a turn that is not killed is waited for.
    fn killed(&mut self, session: &str, text: &str, after: Option<Duration>) -> Heard {
        let before = self.client.heard.len();
        let id = self.client.send_prompt(session, text);
        let took = self.listen(id, after.unwrap_or(PATIENCE));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // What it had written is still heard.
        while self.client.next(PATIENCE).is_some() {}
        let rest = self.client.heard[before..].iter();
        let updates = rest.filter(|it| it["method"] == "session/update");
        let updates = updates.map(|it| it["params"]["update"].clone()).collect();
        Heard { updates, took }
    }

    /// Listens until a prompt is answered or the time is over; how long the answer took.
    fn listen(&mut self, id: u64, limit: Duration) -> Option<Duration> {
        let begin = Instant::now();
        while let Some(message) = self.client.next(limit.saturating_sub(begin.elapsed())) {
            if message["id"] == id {
                assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
                return Some(begin.elapsed());
            }
        }
        None
    }
}

/// The model is told all that the user ever said.
fn must_know(messages: &Value, loaded: &[Value]) {
    let messages = messages.to_string();
    let prompts = loaded.iter().filter(|it| it["is"] == "user_message_chunk");
    for text in prompts.map(|it| it["text"].as_str().unwrap()) {
        assert!(messages.contains(text), "the model does not know of {text}: {messages}");
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |it| it.parse().expect(variable))
}

/// One session after the other, killed so often; how many of its parts were left of how many turns.
fn kill_often(kills: u64, seed: u64) -> BTreeMap<usize, u64> {
    let mut rng = Rng::new(seed);
    let mut desk = Desk::new(ScriptedModel::start(a_turn(0)), &[]);
    fs::write(desk.home.path().join("a.txt"), "text\n").unwrap();
    let mut session = desk.open_to_edit();
    // The first one is not killed: it tells how long a turn takes here.
    let mut heard = desk.killed(&session, "Turn 0", None);
    let mut limit = heard.took.unwrap();
    // What no turn will change any more.
    let mut settled: Vec<Value> = Vec::new();
    let mut moments = BTreeMap::new();
    for kill in 1..=kills + 1 {
        desk.model = ScriptedModel::start(a_turn(kill));
        desk.begin();
        let loaded = desk.load(&session);
        assert!(loaded.starts_with(&settled), "what was settled has changed: {loaded:#?}");
        let kept = &loaded[settled.len()..];
        must_fit(kept, &heard, &format!("Turn {}", kill - 1));
        *moments.entry(kept.len()).or_default() += 1;
        settled = loaded;
        if kill % KILLS_PER_SESSION == 0 {
            (session, settled) = (desk.open_to_edit(), Vec::new());
        }
        // So that about one turn of four ends before it is killed, however busy the machine is.
        limit = limit.mul_f64(if heard.took.is_some() { 0.86 } else { 1.05 });
        assert!(limit < PATIENCE, "no turn ends any more");
        let after = limit * u32::try_from(rng.below(1000)).unwrap() / 1000;
        heard = desk.killed(&session, &format!("Turn {kill}"), Some(after));
        let asked = desk.model.asked();
        asked.iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
        if let Some(first) = asked.first() {
            must_know(&first.body["messages"], &settled);
        }
    }
    moments
}

#[test]
fn a_conversation_survives_kills_of_the_agent() {
    kill_at_random_moments(KILLS_GATE);
}

#[test]
#[ignore = "nightly: half a minute of kills"]
fn a_conversation_survives_two_hundred_kills_of_the_agent() {
    kill_at_random_moments(number("AGENT_KILLS", KILLS_NIGHTLY));
}

#[expect(clippy::print_stderr, reason = "a kill that is not survived can be looked for again")]
fn kill_at_random_moments(kills: u64) {
    let seed = number("AGENT_KILL_SEED", SEED);
    eprintln!("AGENT_KILLS={kills} AGENT_KILL_SEED={seed}");
    // Two at a time: most of it is waiting for processes to start.
    let moments = thread::scope(|scope| {
        let other = scope.spawn(|| kill_often(kills / 2, seed + 1));
        let mut moments = kill_often(kills - kills / 2, seed);
        for (parts, turns) in other.join().unwrap() {
            *moments.entry(parts).or_default() += turns;
        }
        moments
    });
    eprintln!("of {} parts so many were left of so many turns: {moments:?}", WHOLE.len());
    assert!(3 < moments.len(), "all were killed at the same moments: {moments:?}");
}
