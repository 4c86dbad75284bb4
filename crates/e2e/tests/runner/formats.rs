//! What `jackfield run` prints for programs: events and envelopes, complete, and nothing behind the
//! end of a turn.

use super::{ALONE, talk::Talk};
use jackfield_e2e::Home;
use serde_json::Value;

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// What an envelope is about: its type, and how the turn ended.
pub(super) fn kinds(envelopes: &[Value]) -> Vec<String> {
    let kind = |it: &Value| {
        let (what, status) = (it["ev"]["t"].as_str(), it["ev"]["status"].as_str());
        format!("{}{}", what.unwrap_or("?"), status.map(|it| format!(" {it}")).unwrap_or_default())
    };
    envelopes.iter().map(kind).collect()
}

#[test]
fn events_tell_the_turn_and_end_with_it() {
    let home = Home::new();
    let _daemon = home.serve(&[]);
    for alone in [&[][..], &["--isolated"]] {
        let args = [alone, &["--format", "events", "--approve", "all", "think then ask then tool"]];
        let ended = Talk::start(&home, &args.concat(), &[]).finish();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let events = lines(&ended.stdout);
        let types: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
        for wanted in
            ["thinking_delta", "permission_request", "tool_use", "tool_result", "text_delta"]
        {
            assert!(types.contains(&wanted), "{wanted} in {types:?}");
        }
        let last = events.last().unwrap();
        assert_eq!((&last["type"], &last["stopReason"]), (&"usage".into(), &"end_turn".into()));
    }
}

#[test]
fn every_turn_is_an_envelope_of_its_own_and_a_cancelled_one_says_so() {
    let home = Home::new();
    let args = [ALONE, &["--input", "json", "--format", "envelopes"]].concat();
    let mut talk = Talk::start(&home, &args, &[]);
    talk.say(r#"{"prompt":"think"}"#);
    talk.say(r#"{"prompt":"slow 1 1 then hang"}"#);
    talk.hear("slow 1 ", 2);
    talk.say(r#"{"type":"cancel"}"#);
    talk.hear("\"cancelled\"", 1);
    talk.say(r#"{"prompt":"error 7 no key"}"#);
    talk.say(r#"{"prompt":"tool"}"#);
    let ended = talk.finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let envelopes = lines(&ended.stdout);
    let told = kinds(&envelopes);
    let thought = ["text", "turn-start", "text", "turn-end completed"];
    let cancelled = ["text", "turn-start", "text", "turn-end cancelled"];
    let failed = ["text", "turn-start", "turn-end failed"];
    let tool =
        ["text", "turn-start", "tool-call-start", "tool-call-end", "text", "turn-end completed"];
    assert_eq!(told, [&thought[..], &cancelled, &failed, &tool].concat());
    let mut turns: Vec<&str> = envelopes.iter().filter_map(|it| it["turn"].as_str()).collect();
    turns.dedup();
    assert_eq!(turns.len(), 4, "each turn has an id of its own");
    let thinking: Vec<&Value> =
        envelopes.iter().filter(|it| it["ev"]["thinking"] == true).collect();
    assert_eq!(thinking.len(), 1);
}

#[test]
fn a_turn_that_failed_at_an_ask_ends_in_the_envelopes_too() {
    let home = Home::new();
    let args = ["--isolated", "--format", "envelopes", "--on-ask", "fail", "ask then hang"];
    let ended = Talk::start(&home, &args, &["--cancel", "ignore"]).finish();
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert_eq!(kinds(&lines(&ended.stdout)).last().unwrap(), "turn-end cancelled");
}

#[test]
fn a_long_answer_is_told_whole() {
    let home = Home::new();
    let args = ["--isolated", "--format", "envelopes", "burst 20000"];
    let ended = Talk::start(&home, &args, &[]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let envelopes = lines(&ended.stdout);
    let said = envelopes.iter().filter(|it| it["role"] == "agent" && it["ev"]["t"] == "text");
    let numbers: Vec<u64> = said
        .map(|it| it["ev"]["text"].as_str().unwrap().trim().parse::<u64>())
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(numbers.iter().copied().eq(1..=20_000), "{} of 20000", numbers.len());
}
