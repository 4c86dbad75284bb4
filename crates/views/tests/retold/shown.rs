//! Views as a reader of snapshots wants them: a line each, pieces of one text together, ids as
//! numbers in the order of their coming, nothing longer than a line.

use crate::log::Log;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _};

const LINE_CHARS_MAX: usize = 220;

/// Both views of a log.
pub(crate) fn both(log: &Log) -> String {
    format!("{}--\n{}", events(log), envelopes(log))
}

fn events(log: &Log) -> String {
    let mut shown = String::new();
    let mut pieces: Option<(String, usize, String)> = None;
    for event in log.events() {
        let kind = event["type"].as_str().unwrap().to_owned();
        if let Some(delta) = event["delta"].as_str() {
            match &mut pieces {
                Some((of, count, text)) if *of == kind => {
                    *count += 1;
                    text.push_str(delta);
                }
                _ => {
                    put_pieces(&mut shown, pieces.replace((kind, 1, delta.to_owned())));
                }
            }
            continue;
        }
        put_pieces(&mut shown, pieces.take());
        put(&mut shown, &kind, &without(event, "type"));
    }
    put_pieces(&mut shown, pieces);
    shown
}

fn put_pieces(shown: &mut String, pieces: Option<(String, usize, String)>) {
    if let Some((kind, count, text)) = pieces {
        put(shown, &format!("{kind} x{count}"), &Value::from(text));
    }
}

fn envelopes(log: &Log) -> String {
    let mut shown = String::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for envelope in log.whole_envelopes() {
        let mut whole = serde_json::to_value(&envelope).unwrap();
        let mut ev = whole["ev"].take();
        let kind = ev["t"].as_str().unwrap().to_owned();
        for (place, letter) in [("call", 'c')] {
            if let Some(id) = ev[place].as_str() {
                ev[place] = name(&mut names, id, letter).into();
            }
        }
        let mut head = whole["role"].as_str().unwrap().to_owned();
        for (place, letter) in [("turn", 't'), ("subagent", 's')] {
            if let Some(id) = whole[place].as_str() {
                write!(head, " {}", name(&mut names, id, letter)).unwrap();
            }
        }
        let mut told = without(ev, "t");
        if let Some(usage) = whole.get("usage") {
            told["usage"] = usage.clone();
        }
        put(&mut shown, &format!("{head} {kind}"), &told);
    }
    shown
}

fn name(names: &mut BTreeMap<String, String>, id: &str, letter: char) -> String {
    let number = names.values().filter(|it| it.starts_with(letter)).count() + 1;
    names.entry(id.to_owned()).or_insert_with(|| format!("{letter}{number}")).clone()
}

fn without(mut value: Value, member: &str) -> Value {
    value.as_object_mut().unwrap().shift_remove(member);
    value
}

fn put(shown: &mut String, head: &str, rest: &Value) {
    let rest = if rest.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        format!(" {rest}")
    };
    let line: String = format!("{head}{rest}").chars().take(LINE_CHARS_MAX).collect();
    writeln!(shown, "{line}").unwrap();
}
