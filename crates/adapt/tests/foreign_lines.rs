//! Programs that say anything: lines of the recordings cut, repeated, mangled and out of order, and
//! lines that mean nothing. No dialect falls over them, and every prompt has one answer.

use crate::transcripts::{fixture::Fixture, player::play};
use jackfield_agents::Exit;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The CLI whose recordings are taken apart, and the dialect they are read in.
const SPOKEN: &[(&str, &str)] = &[
    ("copilot", "copilot"),
    ("cursor", "cursor"),
    ("gemini", "gemini"),
    ("grok", "grok"),
    ("hermes", "plain"),
    ("kimi", "kimi"),
    ("opencode", "opencode"),
    ("pi", "pi"),
];

/// Everything that a CLI printed, line by line.
static LINES: LazyLock<BTreeMap<&str, Vec<String>>> = LazyLock::new(|| {
    let lines_of = |cli: &str| {
        let recordings = Fixture::all(cli).into_iter();
        let texts = recordings.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    SPOKEN.iter().map(|(cli, _)| (*cli, lines_of(cli))).collect()
});

const NONSENSE: &[&str] = &[
    "",
    " ",
    "null",
    "7",
    "[]",
    "{}",
    "{\"type\":1}",
    "{\"type\":\"\"}",
    "\u{1b}[0m",
    "{\"role\"",
];

/// What becomes of one line.
#[derive(Debug, Clone)]
enum Fate {
    Kept,
    Cut(prop::sample::Index),
    /// One value in it becomes another.
    Mangled(prop::sample::Index, usize),
    Replaced(usize),
}

fn fates() -> impl Strategy<Value = Vec<(prop::sample::Index, Fate)>> {
    let any_index = any::<prop::sample::Index>;
    let fate = prop_oneof![
        3 => Just(Fate::Kept),
        1 => any_index().prop_map(Fate::Cut),
        3 => (any_index(), 0..6_usize).prop_map(|(at, with)| Fate::Mangled(at, with)),
        1 => (0..NONSENSE.len()).prop_map(Fate::Replaced),
    ];
    prop::collection::vec((any_index(), fate), 0..30)
}

fn apply(line: &str, fate: &Fate) -> String {
    match fate {
        Fate::Kept => line.to_owned(),
        Fate::Replaced(at) => NONSENSE[*at].to_owned(),
        Fate::Cut(at) => {
            let chars: Vec<char> = line.chars().collect();
            chars[..at.index(chars.len() + 1)].iter().collect()
        }
        Fate::Mangled(at, with) => {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
            let mut left = at.index(count(&value));
            mangle(&mut value, &mut left, *with);
            value.to_string()
        }
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}

fn count(value: &Value) -> usize {
    let mut value = value.clone();
    1 + children(&mut value).into_iter().map(|child| count(child)).sum::<usize>()
}

/// Replaces the value that is reached after `left` others. Returns whether it was found.
fn mangle(value: &mut Value, left: &mut usize, with: usize) -> bool {
    if *left == 0 {
        let others =
            [json!(null), json!(-1), json!(u64::MAX), json!(""), json!("é\n{"), json!([{}, []])];
        *value = others[with].clone();
        return true;
    }
    *left -= 1;
    children(value).into_iter().any(|child| mangle(child, left, with))
}

/// One answer to each prompt; each tool call created once and ended once.
fn check(told: &[(&'static str, Value)], prompts: u64) {
    let mut answers = 0;
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, frame) in told.iter().filter(|(who, _)| *who == "client") {
        answers += u64::from(frame["id"] == "session/prompt");
        let update = &frame["params"]["update"];
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let ends = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if update["sessionUpdate"] == "tool_call" {
            assert_eq!(open.insert(id, ends), None, "{id} was created twice");
        } else {
            let ended = open.get_mut(id).unwrap();
            assert!(!(*ended && ends), "{id} was ended twice");
            *ended |= ends;
        }
    }
    assert_eq!(answers, prompts);
    assert!(open.values().all(|ended| *ended), "{open:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_too_strange(fates in fates(), code in prop_oneof![Just(0), Just(1), Just(145)]) {
        for (cli, dialect) in SPOKEN {
            let lines = &LINES[cli];
            let said: Vec<String> =
                fates.iter().map(|(at, fate)| apply(&lines[at.index(lines.len())], fate)).collect();
            // The player takes this line for a new turn of a long-lived program, which these are not.
            let said = said.join("\n").replace(r#""type":"system","#, r#""type": "system","#);
            let exit = Exit { code: Some(code), ..Exit::default() };
            let strange = Fixture {
                cli: (*cli).to_owned(),
                case: "strange".to_owned(),
                stdout: said.into_bytes(),
                exit,
                prompt: "Say hello".to_owned(),
            };
            let played = play(dialect, &strange);
            check(&played.told, played.prompts);
        }
    }
}
