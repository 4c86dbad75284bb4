//! The flags of the fake agent, which control the whole process.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

/// Requests and notifications that `--silent`, `--delay` and `--die-at` can name: the method
/// without `session/`.
pub(crate) const PHASES: &[&str] = &[
    "initialize",
    "authenticate",
    "new",
    "load",
    "resume",
    "list",
    "close",
    "delete",
    "prompt",
    "cancel",
    "set_mode",
    "set_config_option",
];

/// Steps of a turn, for `--die-at` only.
const TURN_STEPS: &[&str] = &["prompt-start", "after-update", "before-answer"];

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct AgentFlags {
    switches: BTreeSet<FlagSwitch>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) witness: Option<PathBuf>,
    pub(crate) caps: Vec<String>,
    pub(crate) load: LoadMode,
    pub(crate) resume: ResumeMode,
    pub(crate) cancel: CancelMode,
    pub(crate) usage: UsageMode,
    pub(crate) ids: RequestIdKind,
    /// `None` echoes the version of the client.
    pub(crate) version: Option<i64>,
    pub(crate) exit_before_initialize: Option<ProcessEnd>,
    pub(crate) die_with: ProcessEnd,
    pub(crate) early_updates: u64,
    pub(crate) page: usize,
    pub(crate) stderr: Vec<String>,
    pub(crate) stderr_flood: usize,
    pub(crate) marker: Option<String>,
    /// Set by the agent itself when it starts a process that outlives it.
    pub(crate) stray: Option<Duration>,
    silent: Vec<String>,
    delays: Vec<(String, Duration)>,
    die_at: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlagSwitch {
    Auth,
    AuthRefused,
    Banner,
    Bom,
    CancelRequestIgnored,
    Crlf,
    DieOnce,
    EchoUser,
    Grandchild,
    GrandchildCleanEnv,
    GrandchildHoldsStderr,
    GrandchildHoldsStdout,
    Help,
    IgnoreEof,
    IgnoreTerm,
    Nulls,
    Reexec,
    Relaunch,
    SameSessionId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadMode {
    Ok,
    Null,
    Empty,
    Error32603,
    Error32002,
    Error32602,
    LockedOnce,
    Pretend,
    SuccessForMissing,
    ReplayThenNull,
    ReplayNewToolIds,
    ReplayAfterAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeMode {
    Ok,
    Null,
    Error,
    Pretend,
    SuccessForMissing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelMode {
    Honour,
    Ignore,
    Error,
    Die,
    KeepStreaming,
    Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageMode {
    Never,
    Current,
    Cumulative,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestIdKind {
    Number,
    Zero,
    Big,
    String,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Exit(u8),
    Signal(i32),
}

impl ProcessEnd {
    /// `0`..`255`, or the name of a signal with or without `SIG`.
    pub(crate) fn parse(text: &str) -> Option<ProcessEnd> {
        if let Ok(code) = text.parse() {
            return Some(ProcessEnd::Exit(code));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let (_, number) = SIGNALS.iter().find(|(it, _)| *it == name)?;
        Some(ProcessEnd::Signal(*number))
    }
}

/// The numbers are the same on every supported system.
const SIGNALS: &[(&str, i32)] =
    &[("HUP", 1), ("INT", 2), ("QUIT", 3), ("ABRT", 6), ("KILL", 9), ("SEGV", 11), ("TERM", 15)];

/// A flag, its values, and how it is parsed. The manual describes its effect.
pub(crate) struct FlagSpec {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
    parser: ValueParser,
}

enum ValueParser {
    Switch(FlagSwitch),
    One(ParseOne),
    Two(fn(&mut AgentFlags, &str, &str) -> Option<()>),
}

/// Returns `None` if the value is invalid.
type ParseOne = fn(&mut AgentFlags, &str) -> Option<()>;

const fn switch(name: &'static str, switch: FlagSwitch) -> FlagSpec {
    FlagSpec { name, value: "", parser: ValueParser::Switch(switch) }
}

const fn one(name: &'static str, value: &'static str, parse: ParseOne) -> FlagSpec {
    FlagSpec { name, value, parser: ValueParser::One(parse) }
}

pub(crate) const FLAGS: &[FlagSpec] = &[
    one("--state", "DIR", |f, v| store_value(&mut f.state, Some(Some(v.into())))),
    one("--witness", "FILE", |f, v| store_value(&mut f.witness, Some(Some(v.into())))),
    one("--caps", "LIST", parse_caps),
    one("--load", "HOW", |f, v| choose_value(&mut f.load, LOADS, v)),
    one("--resume", "HOW", |f, v| choose_value(&mut f.resume, RESUMES, v)),
    one("--cancel", "HOW", |f, v| choose_value(&mut f.cancel, CANCELS, v)),
    switch("--cancel-request-ignored", FlagSwitch::CancelRequestIgnored),
    one("--silent", "PHASE", |f, v| parse_phase(v, &[]).map(|it| f.silent.push(it))),
    FlagSpec { name: "--delay", value: "PHASE MS", parser: ValueParser::Two(parse_delay) },
    one("--die-at", "STEP", |f, v| parse_phase(v, TURN_STEPS).map(|it| f.die_at.push(it))),
    one("--die-with", "DEATH", |f, v| store_value(&mut f.die_with, ProcessEnd::parse(v))),
    switch("--die-once", FlagSwitch::DieOnce),
    one("--exit-before-initialize", "DEATH", |f, v| {
        store_value(&mut f.exit_before_initialize, ProcessEnd::parse(v).map(Some))
    }),
    one("--stderr", "TEXT", |f, v| {
        f.stderr.push(v.into());
        Some(())
    }),
    one("--stderr-flood", "BYTES", |f, v| store_value(&mut f.stderr_flood, v.parse().ok())),
    switch("--banner", FlagSwitch::Banner),
    switch("--bom", FlagSwitch::Bom),
    switch("--crlf", FlagSwitch::Crlf),
    switch("--nulls", FlagSwitch::Nulls),
    one("--ids", "KIND", |f, v| choose_value(&mut f.ids, IDS, v)),
    one("--version", "N", parse_version),
    switch("--auth", FlagSwitch::Auth),
    switch("--auth-refused", FlagSwitch::AuthRefused),
    one("--early-updates", "N", |f, v| store_value(&mut f.early_updates, v.parse().ok())),
    switch("--same-session-id", FlagSwitch::SameSessionId),
    one("--page", "N", |f, v| store_value(&mut f.page, v.parse().ok())),
    one("--usage", "KIND", |f, v| choose_value(&mut f.usage, USAGES, v)),
    switch("--echo-user", FlagSwitch::EchoUser),
    switch("--ignore-eof", FlagSwitch::IgnoreEof),
    switch("--ignore-term", FlagSwitch::IgnoreTerm),
    switch("--reexec", FlagSwitch::Reexec),
    switch("--relaunch", FlagSwitch::Relaunch),
    switch("--grandchild", FlagSwitch::Grandchild),
    switch("--grandchild-holds-stdout", FlagSwitch::GrandchildHoldsStdout),
    switch("--grandchild-holds-stderr", FlagSwitch::GrandchildHoldsStderr),
    switch("--grandchild-clean-env", FlagSwitch::GrandchildCleanEnv),
    one("--marker", "TEXT", |f, v| store_value(&mut f.marker, Some(Some(v.into())))),
    switch("--help", FlagSwitch::Help),
];

const LOADS: &[(&str, LoadMode)] = &[
    ("ok", LoadMode::Ok),
    ("null", LoadMode::Null),
    ("empty", LoadMode::Empty),
    ("error-32603", LoadMode::Error32603),
    ("error-32002", LoadMode::Error32002),
    ("error-32602", LoadMode::Error32602),
    ("locked-once", LoadMode::LockedOnce),
    ("pretend", LoadMode::Pretend),
    ("success-for-missing", LoadMode::SuccessForMissing),
    ("replay-then-null", LoadMode::ReplayThenNull),
    ("replay-new-tool-ids", LoadMode::ReplayNewToolIds),
    ("replay-after-answer", LoadMode::ReplayAfterAnswer),
];
const RESUMES: &[(&str, ResumeMode)] = &[
    ("ok", ResumeMode::Ok),
    ("null", ResumeMode::Null),
    ("error", ResumeMode::Error),
    ("pretend", ResumeMode::Pretend),
    ("success-for-missing", ResumeMode::SuccessForMissing),
];
const CANCELS: &[(&str, CancelMode)] = &[
    ("honour", CancelMode::Honour),
    ("ignore", CancelMode::Ignore),
    ("error", CancelMode::Error),
    ("die", CancelMode::Die),
    ("keep-streaming", CancelMode::KeepStreaming),
    ("drain", CancelMode::Drain),
];
const USAGES: &[(&str, UsageMode)] = &[
    ("never", UsageMode::Never),
    ("current", UsageMode::Current),
    ("cumulative", UsageMode::Cumulative),
];
const IDS: &[(&str, RequestIdKind)] = &[
    ("number", RequestIdKind::Number),
    ("zero", RequestIdKind::Zero),
    ("big", RequestIdKind::Big),
    ("string", RequestIdKind::String),
];
const CAPS: &[&str] = &["load", "resume", "list", "close", "delete"];

impl Default for AgentFlags {
    fn default() -> AgentFlags {
        AgentFlags {
            switches: BTreeSet::new(),
            state: None,
            witness: None,
            caps: CAPS.iter().map(ToString::to_string).collect(),
            load: LoadMode::Ok,
            resume: ResumeMode::Ok,
            cancel: CancelMode::Honour,
            usage: UsageMode::Never,
            ids: RequestIdKind::Number,
            version: Some(1),
            exit_before_initialize: None,
            die_with: ProcessEnd::Exit(1),
            early_updates: 0,
            page: usize::MAX,
            stderr: Vec::new(),
            stderr_flood: 0,
            marker: None,
            stray: None,
            silent: Vec::new(),
            delays: Vec::new(),
            die_at: Vec::new(),
        }
    }
}

impl AgentFlags {
    /// Parses the arguments after the program's name, or returns an error message.
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<AgentFlags, String> {
        let mut flags = AgentFlags::default();
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            if name == STRAY_FLAG {
                let seconds = args.next().and_then(|it| it.parse().ok());
                flags.stray = seconds.map(Duration::from_secs);
                continue;
            }
            let flag = FLAGS.iter().find(|it| it.name == name);
            let flag = flag.ok_or_else(|| format!("no such flag: `{name}`"))?;
            let mut value = || args.next().ok_or_else(|| format!("`{name}` wants {}", flag.value));
            let taken = match flag.parser {
                ValueParser::Switch(switch) => {
                    flags.switches.insert(switch);
                    Some(())
                }
                ValueParser::One(parse) => parse(&mut flags, &value()?),
                ValueParser::Two(parse) => {
                    let first = value()?;
                    parse(&mut flags, &first, &value()?)
                }
            };
            taken.ok_or_else(|| format!("no such {} for `{name}`", flag.value))?;
        }
        Ok(flags)
    }

    pub(crate) fn has_switch(&self, switch: FlagSwitch) -> bool {
        self.switches.contains(&switch)
    }

    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.caps.iter().any(|it| it == capability)
    }

    pub(crate) fn is_silent_at(&self, phase: &str) -> bool {
        self.silent.iter().any(|it| it == phase)
    }

    pub(crate) fn should_end_at(&self, step: &str) -> bool {
        self.die_at.iter().any(|it| it == step)
    }

    pub(crate) fn delay_of(&self, phase: &str) -> Option<Duration> {
        self.delays.iter().find(|(it, _)| it == phase).map(|(_, delay)| *delay)
    }
}

/// The flag of orphans that the agent starts: the number of seconds to sleep.
pub(crate) const STRAY_FLAG: &str = "--stray";

/// Stores a value, if there is one.
fn store_value<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn choose_value<T: Copy>(place: &mut T, choices: &[(&str, T)], value: &str) -> Option<()> {
    store_value(place, choices.iter().find(|(it, _)| *it == value).map(|(_, choice)| *choice))
}

fn parse_phase(value: &str, more: &[&str]) -> Option<String> {
    PHASES.iter().chain(more).find(|it| **it == value).map(ToString::to_string)
}

fn parse_caps(flags: &mut AgentFlags, list: &str) -> Option<()> {
    flags.caps = list.split(',').filter(|it| *it != "none").map(ToString::to_string).collect();
    flags.caps.iter().all(|it| CAPS.contains(&it.as_str())).then_some(())
}

fn parse_delay(flags: &mut AgentFlags, at: &str, ms: &str) -> Option<()> {
    flags.delays.push((parse_phase(at, &[])?, Duration::from_millis(ms.parse().ok()?)));
    Some(())
}

fn parse_version(flags: &mut AgentFlags, value: &str) -> Option<()> {
    flags.version = if value == "echo" { None } else { Some(value.parse().ok()?) };
    Some(())
}
