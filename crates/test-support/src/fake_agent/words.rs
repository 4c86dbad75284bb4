//! The words of prompts, and the translation of a prompt into the steps of a turn.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    asks::{ElicitationForm, OutgoingRequest, TerminalAction, TerminalCommand, default_options},
    flags::ProcessEnd,
};

/// A step of a turn. Steps that take time contain their progress.
#[derive(Debug)]
pub(crate) enum TurnStep {
    SendText(String),
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
    /// Several requests at once, and the time after which they are withdrawn.
    SendRequests(Vec<OutgoingRequest>, Option<Duration>),
    Raw(String),
    Junk,
    BadUtf8,
    Partial(Duration),
    Half,
    Huge(usize),
    /// Method and params; `null` stands for default params.
    Notify(&'static str, Value),
    Stderr(String),
    StderrFlood(usize),
    Report(&'static str, String),
    SwitchMode(String),
    Spawn,
    Hang,
    Die(ProcessEnd),
    /// Sets the outcome of the turn.
    Outcome(TurnOutcome),
    /// Answers the prompt; the following steps run after the response.
    Answer,
}

#[derive(Debug, Clone)]
pub(crate) enum TurnOutcome {
    Stop(String),
    /// A result with `"error":null` beside it.
    StopWithNullError,
    /// The same response twice.
    StopTwice,
    Error(i64, String),
}

/// A word and its translation into steps. The manual describes its effect.
pub(crate) struct PromptWord {
    pub(crate) name: &'static str,
    /// It takes the rest of the line, including ` then `.
    takes_line: bool,
    parse: ParseWord,
}

/// Returns `None` if the arguments do not fit: then the line is plain text.
type ParseWord = fn(&str) -> Option<Vec<TurnStep>>;

const fn plain_word(name: &'static str, parse: ParseWord) -> PromptWord {
    PromptWord { name, takes_line: false, parse }
}

const fn line_word(name: &'static str, parse: ParseWord) -> PromptWord {
    PromptWord { name, takes_line: true, parse }
}

pub(crate) const WORDS: &[PromptWord] = &[
    plain_word("burst", |rest| Some(vec![burst(rest)?])),
    plain_word("slow", |rest| {
        let (count, every) = (parse_nth(rest, 0)?, Duration::from_millis(parse_nth(rest, 1)?));
        Some(vec![TurnStep::Slow { next: 1, count, every }])
    }),
    plain_word("tick", |rest| {
        let (count, every) = (parse_nth(rest, 0)?, Duration::from_millis(parse_nth(rest, 1)?));
        Some(vec![TurnStep::Tick { next: 1, count, every }])
    }),
    line_word("split", |rest| {
        let (bytes, text) = rest.split_once(' ')?;
        let bytes = bytes.parse().ok().filter(|it| 0 < *it)?;
        let chars: Vec<char> = text.chars().collect();
        Some(chars.chunks(bytes).map(|it| TurnStep::SendText(it.iter().collect())).collect())
    }),
    plain_word("wait", |rest| {
        Some(vec![TurnStep::Wait(Duration::from_millis(parse_nth(rest, 0)?))])
    }),
    plain_word("think", |rest| {
        step_without_arguments(rest, || TurnStep::Update(chunk("agent_thought_chunk", "thinking")))
    }),
    plain_word("tool", |rest| step_without_arguments(rest, || TurnStep::Tool)),
    plain_word("plan", |rest| step_without_arguments(rest, || TurnStep::Update(plan()))),
    plain_word("commands", |rest| step_without_arguments(rest, || TurnStep::Update(commands()))),
    line_word("title", |rest| {
        step_with_arguments(rest, |it| {
            TurnStep::Update(json!({"sessionUpdate": "session_info_update", "title": it}))
        })
    }),
    plain_word("ask", |rest| permission_requests(rest, false, None)),
    plain_word("ask-stubborn", |rest| permission_requests(rest, true, None)),
    line_word("ask-about", |rest| {
        let ask = |it: &str| OutgoingRequest::Permission {
            index: 1,
            stubborn: false,
            title: it.to_owned(),
            options: default_options(),
        };
        step_with_arguments(rest, |it| one_request(ask(it)))
    }),
    plain_word("ask-offering", |rest| {
        let options: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
        let (index, stubborn, title) = (1, false, "touch a file".to_owned());
        let ask = OutgoingRequest::Permission { index, stubborn, title, options };
        (!rest.is_empty()).then(|| vec![one_request(ask)])
    }),
    plain_word("ask-withdraw", |rest| {
        permission_requests("", false, Some(Duration::from_millis(parse_nth(rest, 0)?)))
    }),
    plain_word("elicit", |rest| {
        Some(vec![TurnStep::SendRequests(
            vec![OutgoingRequest::Elicit(ElicitationForm::parse(rest)?)],
            None,
        )])
    }),
    plain_word("fs-read", |rest| {
        let (path, rest) = split_path(rest)?;
        let mut parts = rest.split_whitespace();
        let mut number = || parts.next().map(str::parse).transpose().ok();
        Some(vec![one_request(OutgoingRequest::FsRead { path, line: number()?, limit: number()? })])
    }),
    line_word("fs-write", |rest| {
        let (path, text) = split_path(rest)?;
        let text = text.strip_prefix(' ')?.to_owned();
        Some(vec![one_request(OutgoingRequest::FsWrite(path, text))])
    }),
    line_word("terminal", |rest| terminal(rest, None, TerminalAction::Wait)),
    line_word("terminal-limit", |rest| {
        let (limit, rest) = rest.split_once(' ')?;
        terminal(rest, Some(limit.parse().ok()?), TerminalAction::Wait)
    }),
    line_word("terminal-line", |rest| {
        let (args, limit) = (Vec::new(), None);
        step_with_arguments(rest, |it| {
            one_request(OutgoingRequest::TerminalCreate(
                TerminalCommand { program: it.into(), args, limit },
                TerminalAction::Wait,
            ))
        })
    }),
    line_word("terminal-kill", |rest| terminal(rest, None, TerminalAction::Kill)),
    line_word("terminal-leave", |rest| terminal(rest, None, TerminalAction::Leave)),
    plain_word("terminal-look", |rest| {
        step_with_arguments(rest, |it| one_request(OutgoingRequest::TerminalLook(it.to_owned())))
    }),
    plain_word("unknown-request", |rest| {
        step_without_arguments(rest, || one_request(OutgoingRequest::Unknown))
    }),
    plain_word("unknown-update", |rest| {
        step_without_arguments(rest, || TurnStep::Update(unknown_update()))
    }),
    plain_word("unknown-notification", |rest| {
        let both = ["_fake/notice", "fake/notice"].map(|it| TurnStep::Notify(it, Value::Null));
        rest.is_empty().then(|| both.into())
    }),
    line_word("raw", |rest| step_with_arguments(rest, |it| TurnStep::Raw(it.to_owned()))),
    plain_word("junk", |rest| step_without_arguments(rest, || TurnStep::Junk)),
    plain_word("partial", |rest| {
        Some(vec![TurnStep::Partial(Duration::from_millis(parse_optional(rest, 0, 0)?))])
    }),
    plain_word("half", |rest| step_without_arguments(rest, || TurnStep::Half)),
    plain_word("bad-utf8", |rest| step_without_arguments(rest, || TurnStep::BadUtf8)),
    plain_word("huge", |rest| Some(vec![TurnStep::Huge(parse_nth(rest, 0)?)])),
    plain_word("answer", |rest| step_without_arguments(rest, || TurnStep::Answer)),
    plain_word("late", |rest| Some(vec![TurnStep::Answer, burst(rest)?])),
    plain_word("two-turns", |rest| {
        let second = TurnStep::SendText("a second turn that nobody asked for".to_owned());
        rest.is_empty().then(|| {
            vec![TurnStep::SendText("the first turn".to_owned()), TurnStep::Answer, second]
        })
    }),
    plain_word("hang", |rest| step_without_arguments(rest, || TurnStep::Hang)),
    plain_word("die", |rest| {
        let death =
            if rest.is_empty() { Some(ProcessEnd::Exit(1)) } else { ProcessEnd::parse(rest) };
        Some(vec![TurnStep::Die(death?)])
    }),
    line_word("stderr", |rest| step_with_arguments(rest, |it| TurnStep::Stderr(it.to_owned()))),
    plain_word("stderr-flood", |rest| Some(vec![TurnStep::StderrFlood(parse_nth(rest, 0)?)])),
    line_word("error", |rest| {
        let (code, text) = rest.split_once(' ').unwrap_or((rest, "failed as told"));
        Some(vec![TurnStep::Outcome(TurnOutcome::Error(code.parse().ok()?, text.to_owned()))])
    }),
    plain_word("error-null", |rest| {
        step_without_arguments(rest, || TurnStep::Outcome(TurnOutcome::StopWithNullError))
    }),
    plain_word("answer-twice", |rest| {
        step_without_arguments(rest, || TurnStep::Outcome(TurnOutcome::StopTwice))
    }),
    plain_word("stop", |rest| {
        let plain = !rest.is_empty() && !rest.contains(' ');
        plain.then(|| vec![TurnStep::Outcome(TurnOutcome::Stop(rest.to_owned()))])
    }),
    plain_word("count", |rest| {
        step_without_arguments(rest, || TurnStep::Report("count", String::new()))
    }),
    plain_word("history", |rest| {
        step_without_arguments(rest, || TurnStep::Report("history", String::new()))
    }),
    plain_word("mode", |rest| {
        Some(vec![match rest {
            "" => TurnStep::Report("mode", String::new()),
            mode => {
                TurnStep::SwitchMode(super::session::MODES.contains(&mode).then(|| mode.into())?)
            }
        }])
    }),
    plain_word("model", |rest| {
        step_without_arguments(rest, || TurnStep::Report("model", String::new()))
    }),
    plain_word("effort", |rest| {
        step_without_arguments(rest, || TurnStep::Report("effort", String::new()))
    }),
    plain_word("env", |rest| {
        step_with_arguments(rest, |it| TurnStep::Report("env", it.to_owned()))
    }),
    plain_word("cwd", |rest| {
        step_without_arguments(rest, || TurnStep::Report("cwd", String::new()))
    }),
    plain_word("pid", |rest| {
        step_without_arguments(rest, || TurnStep::Report("pid", String::new()))
    }),
    plain_word("caps", |rest| {
        step_without_arguments(rest, || TurnStep::Report("caps", String::new()))
    }),
    plain_word("mcp", |rest| {
        step_without_arguments(rest, || TurnStep::Report("mcp", String::new()))
    }),
    plain_word("params", |rest| {
        step_without_arguments(rest, || TurnStep::Report("params", String::new()))
    }),
    plain_word("complaints", |rest| {
        step_without_arguments(rest, || TurnStep::Report("complaints", String::new()))
    }),
    plain_word("spawn", |rest| step_without_arguments(rest, || TurnStep::Spawn)),
];

/// The steps of a prompt. Lines without a known word are echoed.
pub(crate) fn parse_prompt(prompt: &str) -> Vec<TurnStep> {
    let mut steps = Vec::new();
    let mut plain: Vec<&str> = Vec::new();
    for line in prompt.lines() {
        match parse_line(line.trim()) {
            Some(more) => {
                echo_lines(&mut plain, &mut steps);
                steps.extend(more);
            }
            None => plain.push(line),
        }
    }
    echo_lines(&mut plain, &mut steps);
    steps
}

fn echo_lines(plain: &mut Vec<&str>, steps: &mut Vec<TurnStep>) {
    if !plain.is_empty() {
        steps.push(TurnStep::SendText(format!("you said: {}", plain.join("\n"))));
        plain.clear();
    }
}

/// The steps of a whole line, or `None`.
fn parse_line(line: &str) -> Option<Vec<TurnStep>> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let word = WORDS.iter().find(|it| it.name == name)?;
    if word.takes_line {
        return (word.parse)(rest.trim());
    }
    let (rest, next) = match line.split_once(" then ") {
        Some((first, next)) => (first.strip_prefix(name).unwrap_or(""), Some(next)),
        None => (rest, None),
    };
    let mut steps = (word.parse)(rest.trim())?;
    if let Some(next) = next {
        steps.extend(parse_line(next.trim())?);
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

fn one_request(ask: OutgoingRequest) -> TurnStep {
    TurnStep::SendRequests(vec![ask], None)
}

/// Splits a path from the text behind it: a word, or a JSON string if the path has spaces.
fn split_path(rest: &str) -> Option<(String, &str)> {
    if !rest.starts_with('"') {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        return (end != 0).then(|| (rest[..end].to_owned(), &rest[end..]));
    }
    let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let path = strings.next()?.ok()?;
    Some((path, &rest[strings.byte_offset()..]))
}

fn terminal(rest: &str, limit: Option<u64>, then: TerminalAction) -> Option<Vec<TurnStep>> {
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (program, args) = (words.next()?, words.collect());
    Some(vec![one_request(OutgoingRequest::TerminalCreate(
        TerminalCommand { program, args, limit },
        then,
    ))])
}

fn permission_requests(
    rest: &str,
    stubborn: bool,
    withdraw: Option<Duration>,
) -> Option<Vec<TurnStep>> {
    let count: u32 = parse_optional(rest, 0, 1)?;
    let title = "touch a file".to_owned();
    let asks = (1..=count).map(|index| OutgoingRequest::Permission {
        index,
        stubborn,
        title: title.clone(),
        options: default_options(),
    });
    Some(vec![TurnStep::SendRequests(asks.collect(), withdraw)])
}

fn burst(rest: &str) -> Option<TurnStep> {
    Some(TurnStep::Burst { next: 1, count: parse_nth(rest, 0)?, size: parse_optional(rest, 1, 0)? })
}

/// One step for a word without arguments.
fn step_without_arguments(rest: &str, step: impl FnOnce() -> TurnStep) -> Option<Vec<TurnStep>> {
    rest.is_empty().then(|| vec![step()])
}

/// One step for a word with arguments.
fn step_with_arguments(rest: &str, step: impl FnOnce(&str) -> TurnStep) -> Option<Vec<TurnStep>> {
    (!rest.is_empty()).then(|| vec![step(rest)])
}

fn parse_nth<T: std::str::FromStr>(rest: &str, index: usize) -> Option<T> {
    rest.split_whitespace().nth(index)?.parse().ok()
}

fn parse_optional<T: std::str::FromStr>(rest: &str, index: usize, default: T) -> Option<T> {
    rest.split_whitespace().nth(index).map_or(Some(default), |it| it.parse().ok())
}
