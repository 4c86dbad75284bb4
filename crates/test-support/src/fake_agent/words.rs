//! The words a prompt can be made of, and how a prompt becomes the steps of a turn.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    asks::{Ask, Command, Form, Then},
    flags::Death,
};

/// One thing a turn does. What takes time keeps its own place.
#[derive(Debug)]
pub(crate) enum Step {
    Say(String),
    Update(Value),
    Burst {
        next: u64,
        count: u64,
        size: usize,
    },
    Slow {
        next: u64,
        count: u64,
        every: Duration,
    },
    Tick {
        next: u64,
        count: u64,
        every: Duration,
    },
    Wait(Duration),
    Tool,
    /// So many at once; a time after which they are withdrawn.
    Asks(Vec<Ask>, Option<Duration>),
    Raw(String),
    Junk,
    BadUtf8,
    Partial(Duration),
    Half,
    Huge(usize),
    /// Method and params; `null` stands for some params.
    Notify(&'static str, Value),
    Stderr(String),
    StderrFlood(usize),
    Report(&'static str, String),
    SwitchMode(String),
    Spawn,
    Hang,
    Die(Death),
    /// How the turn will be answered.
    Outcome(Outcome),
    /// The answer goes out here; what follows is late.
    Answer,
}

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Stop(String),
    /// A result with `"error":null` beside it.
    StopWithNullError,
    /// The same answer two times.
    StopTwice,
    Error(i64, String),
}

/// A word, and how it and what follows become steps. What it does stands in the manual.
pub(crate) struct Word {
    pub(crate) name: &'static str,
    /// Takes everything up to the end of the line, ` then ` included.
    takes_line: bool,
    read: Read,
}

/// `None` when the arguments do not fit: then the line is plain text.
type Read = fn(&str) -> Option<Vec<Step>>;

const fn word(name: &'static str, read: Read) -> Word {
    Word { name, takes_line: false, read }
}

const fn line(name: &'static str, read: Read) -> Word {
    Word { name, takes_line: true, read }
}

pub(crate) const WORDS: &[Word] = &[
    word("burst", |rest| Some(vec![burst(rest)?])),
    word("slow", |rest| {
        let (count, every) = (nth(rest, 0)?, Duration::from_millis(nth(rest, 1)?));
        Some(vec![Step::Slow { next: 1, count, every }])
    }),
    word("tick", |rest| {
        let (count, every) = (nth(rest, 0)?, Duration::from_millis(nth(rest, 1)?));
        Some(vec![Step::Tick { next: 1, count, every }])
    }),
    line("split", |rest| {
        let (bytes, text) = rest.split_once(' ')?;
        let bytes = bytes.parse().ok().filter(|it| 0 < *it)?;
        let chars: Vec<char> = text.chars().collect();
        Some(chars.chunks(bytes).map(|it| Step::Say(it.iter().collect())).collect())
    }),
    word("wait", |rest| Some(vec![Step::Wait(Duration::from_millis(nth(rest, 0)?))])),
    word("think", |rest| bare(rest, || Step::Update(chunk("agent_thought_chunk", "thinking")))),
    word("tool", |rest| bare(rest, || Step::Tool)),
    word("plan", |rest| bare(rest, || Step::Update(plan()))),
    word("commands", |rest| bare(rest, || Step::Update(commands()))),
    line("title", |rest| {
        some(rest, |it| Step::Update(json!({"sessionUpdate": "session_info_update", "title": it})))
    }),
    word("ask", |rest| asks(rest, false, None)),
    word("ask-stubborn", |rest| asks(rest, true, None)),
    line("ask-about", |rest| {
        let ask = |it: &str| Ask::Permission { index: 1, stubborn: false, title: it.to_owned() };
        some(rest, |it| one_ask(ask(it)))
    }),
    word("ask-withdraw", |rest| asks("", false, Some(Duration::from_millis(nth(rest, 0)?)))),
    word("elicit", |rest| Some(vec![Step::Asks(vec![Ask::Elicit(Form::parse(rest)?)], None)])),
    word("fs-read", |rest| {
        let mut parts = rest.split_whitespace();
        let path = parts.next()?.to_owned();
        let mut number = || parts.next().map(str::parse).transpose().ok();
        Some(vec![one_ask(Ask::FsRead { path, line: number()?, limit: number()? })])
    }),
    line("fs-write", |rest| {
        let (path, text) = rest.split_once(' ')?;
        Some(vec![one_ask(Ask::FsWrite(path.to_owned(), text.to_owned()))])
    }),
    line("terminal", |rest| terminal(rest, None, Then::Wait)),
    line("terminal-limit", |rest| {
        let (limit, rest) = rest.split_once(' ')?;
        terminal(rest, Some(limit.parse().ok()?), Then::Wait)
    }),
    line("terminal-line", |rest| {
        let (args, limit) = (Vec::new(), None);
        some(rest, |it| {
            one_ask(Ask::TerminalCreate(Command { program: it.into(), args, limit }, Then::Wait))
        })
    }),
    line("terminal-kill", |rest| terminal(rest, None, Then::Kill)),
    line("terminal-leave", |rest| terminal(rest, None, Then::Leave)),
    word("terminal-look", |rest| some(rest, |it| one_ask(Ask::TerminalLook(it.to_owned())))),
    word("unknown-request", |rest| bare(rest, || one_ask(Ask::Unknown))),
    word("unknown-update", |rest| bare(rest, || Step::Update(unknown_update()))),
    word("unknown-notification", |rest| {
        let both = ["_fake/notice", "fake/notice"].map(|it| Step::Notify(it, Value::Null));
        rest.is_empty().then(|| both.into())
    }),
    line("raw", |rest| some(rest, |it| Step::Raw(it.to_owned()))),
    word("junk", |rest| bare(rest, || Step::Junk)),
    word("partial", |rest| Some(vec![Step::Partial(Duration::from_millis(optional(rest, 0, 0)?))])),
    word("half", |rest| bare(rest, || Step::Half)),
    word("bad-utf8", |rest| bare(rest, || Step::BadUtf8)),
    word("huge", |rest| Some(vec![Step::Huge(nth(rest, 0)?)])),
    word("answer", |rest| bare(rest, || Step::Answer)),
    word("late", |rest| Some(vec![Step::Answer, burst(rest)?])),
    word("two-turns", |rest| {
        let second = Step::Say("a second turn that nobody asked for".to_owned());
        rest.is_empty().then(|| vec![Step::Say("the first turn".to_owned()), Step::Answer, second])
    }),
    word("hang", |rest| bare(rest, || Step::Hang)),
    word("die", |rest| {
        let death = if rest.is_empty() { Some(Death::Exit(1)) } else { Death::parse(rest) };
        Some(vec![Step::Die(death?)])
    }),
    line("stderr", |rest| some(rest, |it| Step::Stderr(it.to_owned()))),
    word("stderr-flood", |rest| Some(vec![Step::StderrFlood(nth(rest, 0)?)])),
    line("error", |rest| {
        let (code, text) = rest.split_once(' ').unwrap_or((rest, "failed as told"));
        Some(vec![Step::Outcome(Outcome::Error(code.parse().ok()?, text.to_owned()))])
    }),
    word("error-null", |rest| bare(rest, || Step::Outcome(Outcome::StopWithNullError))),
    word("answer-twice", |rest| bare(rest, || Step::Outcome(Outcome::StopTwice))),
    word("stop", |rest| {
        let plain = !rest.is_empty() && !rest.contains(' ');
        plain.then(|| vec![Step::Outcome(Outcome::Stop(rest.to_owned()))])
    }),
    word("count", |rest| bare(rest, || Step::Report("count", String::new()))),
    word("history", |rest| bare(rest, || Step::Report("history", String::new()))),
    word("mode", |rest| {
        Some(vec![match rest {
            "" => Step::Report("mode", String::new()),
            mode => Step::SwitchMode(super::session::MODES.contains(&mode).then(|| mode.into())?),
        }])
    }),
    word("model", |rest| bare(rest, || Step::Report("model", String::new()))),
    word("effort", |rest| bare(rest, || Step::Report("effort", String::new()))),
    word("env", |rest| some(rest, |it| Step::Report("env", it.to_owned()))),
    word("cwd", |rest| bare(rest, || Step::Report("cwd", String::new()))),
    word("pid", |rest| bare(rest, || Step::Report("pid", String::new()))),
    word("caps", |rest| bare(rest, || Step::Report("caps", String::new()))),
    word("mcp", |rest| bare(rest, || Step::Report("mcp", String::new()))),
    word("params", |rest| bare(rest, || Step::Report("params", String::new()))),
    word("complaints", |rest| bare(rest, || Step::Report("complaints", String::new()))),
    word("spawn", |rest| bare(rest, || Step::Spawn)),
];

/// The steps of a prompt. Lines without a word of ours are said back.
pub(crate) fn script(prompt: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut plain: Vec<&str> = Vec::new();
    for line in prompt.lines() {
        match script_line(line.trim()) {
            Some(more) => {
                say_back(&mut plain, &mut steps);
                steps.extend(more);
            }
            None => plain.push(line),
        }
    }
    say_back(&mut plain, &mut steps);
    steps
}

fn say_back(plain: &mut Vec<&str>, steps: &mut Vec<Step>) {
    if !plain.is_empty() {
        steps.push(Step::Say(format!("you said: {}", plain.join("\n"))));
        plain.clear();
    }
}

/// All of a line, or none of it.
fn script_line(line: &str) -> Option<Vec<Step>> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let word = WORDS.iter().find(|it| it.name == name)?;
    if word.takes_line {
        return (word.read)(rest.trim());
    }
    let (rest, next) = match line.split_once(" then ") {
        Some((first, next)) => (first.strip_prefix(name).unwrap_or(""), Some(next)),
        None => (rest, None),
    };
    let mut steps = (word.read)(rest.trim())?;
    if let Some(next) = next {
        steps.extend(script_line(next.trim())?);
    }
    Some(steps)
}

pub(crate) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn plan() -> Value {
    let entry = |it, status| json!({"content": it, "priority": "medium", "status": status});
    let entries = [entry("read", "completed"), entry("write", "in_progress")];
    json!({"sessionUpdate": "plan", "entries": entries})
}

fn commands() -> Value {
    let command = json!({"name": "fake", "description": "does nothing", "input": {"hint": "what"}});
    json!({"sessionUpdate": "available_commands_update", "availableCommands": [command]})
}

fn unknown_update() -> Value {
    json!({
        "sessionUpdate": "fake_unknown", "nobody": ["knows", {"this": null}],
        "number": 12_345_678_901_234_567_890_u64, "_meta": {"fake": true},
    })
}

fn one_ask(ask: Ask) -> Step {
    Step::Asks(vec![ask], None)
}

fn terminal(rest: &str, limit: Option<u64>, then: Then) -> Option<Vec<Step>> {
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (program, args) = (words.next()?, words.collect());
    Some(vec![one_ask(Ask::TerminalCreate(Command { program, args, limit }, then))])
}

fn asks(rest: &str, stubborn: bool, withdraw: Option<Duration>) -> Option<Vec<Step>> {
    let count: u32 = optional(rest, 0, 1)?;
    let title = "touch a file".to_owned();
    let asks = (1..=count).map(|index| Ask::Permission { index, stubborn, title: title.clone() });
    Some(vec![Step::Asks(asks.collect(), withdraw)])
}

fn burst(rest: &str) -> Option<Step> {
    Some(Step::Burst { next: 1, count: nth(rest, 0)?, size: optional(rest, 1, 0)? })
}

/// One step for a word that takes nothing.
fn bare(rest: &str, step: impl FnOnce() -> Step) -> Option<Vec<Step>> {
    rest.is_empty().then(|| vec![step()])
}

/// One step for a word that takes something.
fn some(rest: &str, step: impl FnOnce(&str) -> Step) -> Option<Vec<Step>> {
    (!rest.is_empty()).then(|| vec![step(rest)])
}

fn nth<T: std::str::FromStr>(rest: &str, index: usize) -> Option<T> {
    rest.split_whitespace().nth(index)?.parse().ok()
}

fn optional<T: std::str::FromStr>(rest: &str, index: usize, default: T) -> Option<T> {
    rest.split_whitespace().nth(index).map_or(Some(default), |it| it.parse().ok())
}
