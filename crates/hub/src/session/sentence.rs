//! What a session waits for, as one sentence.

use super::calls::{Call, ToolCalls};
use crate::{Time, config::WaitPhase};
use jackfield_protocol::quote_argv;
use serde_json::Value;

/// Longer commands and titles are cut.
const SHOWN_CHARS_MAX: usize = 60;

pub(super) fn of(
    phase: WaitPhase,
    silent_ms: u64,
    calls: &ToolCalls,
    ask: Option<(u64, Time)>,
    now: Time,
) -> String {
    let silent = roughly(silent_ms);
    match phase {
        WaitPhase::Starting => format!("the process of the agent is being started for {silent}"),
        WaitPhase::Initializing => {
            format!("no answer to `initialize` for {silent}; process alive")
        }
        WaitPhase::Opening => format!("the agent opens the session for {silent}; process alive"),
        WaitPhase::Thinking => format!("no output for {silent}; no tool running; process alive"),
        WaitPhase::Tool => {
            let mut running: Vec<&Call> = calls.running().collect();
            running.sort_by_key(|it| it.began);
            let shown = running.first().map(|it| describe_call(it, now)).unwrap_or_default();
            let more = match running.len() {
                0 | 1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            format!("no output for {silent}; {shown}{more}; process alive")
        }
        WaitPhase::Human => match ask {
            Some((number, at)) => {
                format!("waits for an answer to ask {number} for {}", roughly(now.since(at)))
            }
            None => "waits for an answer".to_owned(),
        },
    }
}

pub(super) fn in_line(places: usize) -> String {
    match places {
        1 => "waits for the one agent that may be alive to become free".to_owned(),
        places => format!("waits for one of {places} agents to become free"),
    }
}

/// ``shell command `npm test` running 9 min 12 s``
fn describe_call(call: &Call, now: Time) -> String {
    let age = exactly(now.since(call.began));
    let title = call.text("title").unwrap_or_default();
    let (what, name) = match command(call) {
        Some(command) => ("shell command", command),
        None if call.text("kind") == Some("execute") => ("shell command", title.to_owned()),
        None => ("tool", title.to_owned()),
    };
    match on_one_line(&name) {
        name if name.is_empty() => format!("{what} running {age}"),
        name => format!("{what} `{name}` running {age}"),
    }
}

/// What an agent reports to run: a line, or a program and its arguments.
fn command(call: &Call) -> Option<String> {
    match call.known.get("rawInput")?.get("command")? {
        Value::String(line) => Some(line.clone()),
        Value::Array(argv) => {
            let argv = argv.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
            Some(quote_argv(argv))
        }
        _ => None,
    }
}

/// The text on one line, without backticks, and cut.
fn on_one_line(text: &str) -> String {
    let plain = |it: char| if it.is_control() || it == '`' { ' ' } else { it };
    let text: String = text.chars().map(plain).collect();
    let text = text.trim();
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    cut.push('…');
    cut
}

fn exactly(ms: u64) -> String {
    let seconds = ms / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn roughly(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        _ => exactly(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::Frame;

    fn calls(rest: &[&str]) -> ToolCalls {
        let mut calls = ToolCalls::default();
        for (at, rest) in rest.iter().enumerate() {
            let text = format!(
                r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"tool_call","toolCallId":"{at}",{rest}}}}}}}"#
            );
            calls.on_update(&Frame::parse_str(&text).unwrap(), Time(at as u64));
        }
        calls
    }

    fn tool(rest: &[&str]) -> String {
        of(WaitPhase::Tool, 540_000, &calls(rest), None, Time(552_000))
    }

    #[test]
    fn a_command_is_named_with_its_age() {
        let expected =
            "no output for 9 min; shell command `npm test` running 9 min 12 s; process alive";
        assert_eq!(tool(&[r#""title":"Shell","rawInput":{"command":"npm test"}"#]), expected);
        assert_eq!(tool(&[r#""title":"npm test","kind":"execute""#]), expected);
        assert_eq!(tool(&[r#""title":"x","rawInput":{"command":["npm","test"]}"#]), expected);
    }

    #[test]
    fn other_tools_have_a_title_and_the_oldest_is_named() {
        let text = tool(&[r#""title":"Read `a`\nb""#, r#""title":"Second""#]);
        let shown = "tool `Read  a  b` running 9 min 12 s and 1 more";
        assert_eq!(text, format!("no output for 9 min; {shown}; process alive"));
    }

    #[test]
    fn a_long_command_is_cut_and_a_nameless_one_is_none() {
        assert!(tool(&[&format!(r#""title":"{}""#, "x".repeat(500))]).len() < 160);
        assert!(tool(&[r#""kind":"execute""#]).contains("; shell command running 9 min 12 s;"));
    }

    #[test]
    fn times_are_as_exact_as_they_are_of_use() {
        assert_eq!((exactly(59_999), exactly(61_000)), ("59 s".into(), "1 min 1 s".into()));
        assert_eq!(exactly(7_500_000), "2 h 5 min");
        assert_eq!((roughly(61_000), roughly(4_000)), ("1 min".into(), "4 s".into()));
    }
}
