//! What the log of one session must be: numbered without a gap, each turn, each ask and each queued
//! prompt with one beginning and one outcome.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The log of a session, gone through once.
#[derive(Default)]
pub(super) struct Story {
    turn: Option<u64>,
    turns: u64,
    asks: u64,
    open_asks: BTreeSet<u64>,
    prompts: u64,
    queue: BTreeSet<u64>,
    /// The prompts that ran, by token, with how their turn ended.
    pub(super) ran: BTreeMap<String, String>,
    running: Option<String>,
    /// How often each kind of event stands there, and each kind of outcome.
    pub(super) kinds: BTreeMap<String, u64>,
    pub(super) wrong: Vec<String>,
}

impl Story {
    pub(super) fn of(log: &[Value]) -> Story {
        let mut story = Story::default();
        for (seq, event) in (1..).zip(log) {
            if let Err(why) = story.go_on(event) {
                story.wrong.push(format!("{why}: {seq} {event}"));
            }
        }
        if story.turn.is_some() || !story.open_asks.is_empty() || !story.queue.is_empty() {
            let Story { turn, open_asks, queue, .. } = &story;
            let what = format!("no outcome: turn {turn:?}, asks {open_asks:?}, prompts {queue:?}");
            story.wrong.push(what);
        }
        story
    }

    fn go_on(&mut self, event: &Value) -> Result<(), &'static str> {
        let is = event["is"].as_str().unwrap_or("nothing");
        self.count(is);
        let number = |name: &str| event[name].as_u64();
        match is {
            "prompted" => {
                let turn = number("turn").ok_or("a turn without a number")?;
                if self.turn.replace(turn).is_some() || turn != self.turns + 1 {
                    return Err("two turns at once, or a turn without its number");
                }
                self.turns = turn;
                if number("prompt").is_some_and(|it| !self.queue.remove(&it)) {
                    return Err("a queued prompt that was not, or no longer, queued");
                }
                let text = event.pointer("/frame/params/prompt/0/text").and_then(Value::as_str);
                let token = token(text.unwrap_or_default()).ok_or("a prompt of nobody")?;
                if self.ran.insert(token.clone(), "open".to_owned()).is_some() {
                    return Err("a prompt that ran twice");
                }
                self.running = Some(token);
            }
            "ended" => {
                if self.turn.take() != number("turn") {
                    return Err("a second outcome, or one of another turn");
                }
                let how = event["how"].as_str().unwrap_or_default();
                self.count(how);
                let token = self.running.take().unwrap_or_default();
                self.ran.insert(token, how.to_owned());
            }
            "asked" => {
                self.asks += 1;
                if number("ask") != Some(self.asks) {
                    return Err("an ask without its number");
                }
                self.open_asks.insert(self.asks);
            }
            "answered" => {
                if !number("ask").is_some_and(|it| self.open_asks.remove(&it)) {
                    return Err("a second answer");
                }
                let void = event["answer"].get("void").is_some();
                self.count(if void { "void" } else { "answered by someone" });
            }
            "queued" => {
                self.prompts += 1;
                if number("prompt") != Some(self.prompts) {
                    return Err("a queued prompt without its number");
                }
                self.queue.insert(self.prompts);
            }
            "withdrawn" if !number("prompt").is_some_and(|it| self.queue.remove(&it)) => {
                return Err("a prompt withdrawn that does not wait");
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, what: &str) {
        *self.kinds.entry(what.to_owned()).or_default() += 1;
    }
}

/// The token a prompt carries. Its own comes last: a digest of earlier ones may stand before it.
pub(super) fn token(text: &str) -> Option<String> {
    let at = text.rfind("t-")?;
    text.get(at..at + "t-000000".len()).map(str::to_owned)
}

#[test]
fn a_log_that_tells_something_twice_or_not_to_its_end_is_seen_through() {
    use serde_json::json;
    let prompted = |turn: u64, token: &str| {
        let prompt = json!([{ "type": "text", "text": format!("{token}\nask") }]);
        json!({ "is": "prompted", "turn": turn, "frame": { "params": { "prompt": prompt } } })
    };
    let ended = |turn: u64| json!({ "is": "ended", "turn": turn, "how": "stopped" });
    let asked = json!({ "is": "asked", "ask": 1 });
    let answered = json!({ "is": "answered", "ask": 1, "answer": {} });
    let queued = json!({ "is": "queued", "prompt": 1 });
    let withdrawn = json!({ "is": "withdrawn", "prompt": 1 });
    let one = [prompted(1, "t-000001"), asked.clone(), answered.clone(), ended(1)];
    let whole = Story::of(&[&one[..], &[queued.clone(), withdrawn.clone()]].concat());
    assert_eq!(whole.wrong, Vec::<String>::new());
    assert_eq!(whole.ran["t-000001"], "stopped");
    let twice = [
        vec![ended(1)],
        vec![answered],
        vec![asked],
        vec![prompted(2, "t-000001"), ended(2)],
        vec![prompted(3, "t-000003"), ended(3)],
        vec![prompted(2, "t-000002")],
        vec![prompted(2, "t-000002"), prompted(3, "t-000003"), ended(3)],
        vec![queued.clone()],
        vec![queued, withdrawn.clone(), withdrawn],
    ];
    for more in twice {
        let story = Story::of(&[&one[..], &more].concat());
        assert!(!story.wrong.is_empty(), "{more:?}");
    }
}
