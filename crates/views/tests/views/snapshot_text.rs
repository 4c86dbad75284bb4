//! Views as text for snapshots: one line per event, chunks of one text joined, ids replaced by numbers in
//! order of appearance, lines truncated.

use crate::session_log::SessionLog;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _};

const LINE_CHARS_MAX: usize = 220;

/// Both views of a log.
pub(crate) fn render_views(log: &SessionLog) -> String {
    format!("{}--\n{}", render_events(log), render_envelopes(log))
}

fn render_events(log: &SessionLog) -> String {
    let mut text = String::new();
    let mut pending: Option<(String, usize, String)> = None;
    for event in log.agent_events() {
        let kind = event["type"].as_str().unwrap().to_owned();
        if let Some(delta) = event["delta"].as_str() {
            match &mut pending {
                Some((pending_kind, count, joined)) if *pending_kind == kind => {
                    *count += 1;
                    joined.push_str(delta);
                }
                _ => {
                    push_joined(&mut text, pending.replace((kind, 1, delta.to_owned())));
                }
            }
            continue;
        }
        push_joined(&mut text, pending.take());
        push_line(&mut text, &kind, &without_member(event, "type"));
    }
    push_joined(&mut text, pending);
    text
}

fn push_joined(text: &mut String, pending: Option<(String, usize, String)>) {
    if let Some((kind, count, joined)) = pending {
        push_line(text, &format!("{kind} x{count}"), &Value::from(joined));
    }
}

fn render_envelopes(log: &SessionLog) -> String {
    let mut text = String::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for envelope in log.joined_envelopes() {
        let mut envelope = serde_json::to_value(&envelope).unwrap();
        let mut ev = envelope["ev"].take();
        let kind = ev["t"].as_str().unwrap().to_owned();
        for (member, letter) in [("call", 'c')] {
            if let Some(id) = ev[member].as_str() {
                ev[member] = number_id(&mut names, id, letter).into();
            }
        }
        let mut head = envelope["role"].as_str().unwrap().to_owned();
        for (member, letter) in [("turn", 't'), ("subagent", 's')] {
            if let Some(id) = envelope[member].as_str() {
                write!(head, " {}", number_id(&mut names, id, letter)).unwrap();
            }
        }
        let mut content = without_member(ev, "t");
        if let Some(usage) = envelope.get("usage") {
            content["usage"] = usage.clone();
        }
        push_line(&mut text, &format!("{head} {kind}"), &content);
    }
    text
}

fn number_id(names: &mut BTreeMap<String, String>, id: &str, letter: char) -> String {
    let number = names.values().filter(|it| it.starts_with(letter)).count() + 1;
    names.entry(id.to_owned()).or_insert_with(|| format!("{letter}{number}")).clone()
}

fn without_member(mut value: Value, member: &str) -> Value {
    value.as_object_mut().unwrap().shift_remove(member);
    value
}

fn push_line(text: &mut String, head: &str, rest: &Value) {
    let rest = if rest.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        format!(" {rest}")
    };
    let line: String = format!("{head}{rest}").chars().take(LINE_CHARS_MAX).collect();
    writeln!(text, "{line}").unwrap();
}
