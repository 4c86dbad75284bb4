//! The flags of the fake agent: what the whole process does, whatever it is asked.

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

/// Moments inside a turn, for `--die-at` only.
const MOMENTS: &[&str] = &["prompt-start", "after-update", "before-answer"];

/// What the process was told on its command line.
#[derive(Debug)]
pub(crate) struct Flags {
    switches: BTreeSet<Switch>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) witness: Option<PathBuf>,
    pub(crate) caps: Vec<String>,
    pub(crate) load: Load,
    pub(crate) resume: Resume,
    pub(crate) cancel: Cancel,
    pub(crate) usage: Usage,
    pub(crate) ids: Ids,
    /// `None` echoes whatever the client asked for.
    pub(crate) version: Option<i64>,
    pub(crate) exit_before_initialize: Option<Death>,
    pub(crate) die_with: Death,
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
pub(crate) enum Switch {
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
pub(crate) enum Load {
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
pub(crate) enum Resume {
    Ok,
    Null,
    Error,
    Pretend,
    SuccessForMissing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    Honour,
    Ignore,
    Error,
    Die,
    KeepStreaming,
    Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    Never,
    Current,
    Cumulative,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    Number,
    Zero,
    Big,
    String,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Exit(u8),
    Signal(i32),
}

impl Death {
    /// `0`..`255`, or the name of a signal with or without `SIG`.
    pub(crate) fn parse(text: &str) -> Option<Death> {
        if let Ok(code) = text.parse() {
            return Some(Death::Exit(code));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let (_, number) = SIGNALS.iter().find(|(it, _)| *it == name)?;
        Some(Death::Signal(*number))
    }
}

/// The numbers are the same on every system we test on.
const SIGNALS: &[(&str, i32)] =
    &[("HUP", 1), ("INT", 2), ("QUIT", 3), ("ABRT", 6), ("KILL", 9), ("SEGV", 11), ("TERM", 15)];

/// A flag, what follows it, and how it is taken in. What it does stands in the manual.
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
    take: Take,
}

enum Take {
    Switch(Switch),
    One(TakeOne),
    Two(fn(&mut Flags, &str, &str) -> Option<()>),
}

/// `None` when the value is not one of those that make sense.
type TakeOne = fn(&mut Flags, &str) -> Option<()>;

const fn switch(name: &'static str, switch: Switch) -> Flag {
    Flag { name, value: "", take: Take::Switch(switch) }
}

const fn one(name: &'static str, value: &'static str, take: TakeOne) -> Flag {
    Flag { name, value, take: Take::One(take) }
}

pub(crate) const FLAGS: &[Flag] = &[
    one("--state", "DIR", |f, v| put(&mut f.state, Some(Some(v.into())))),
    one("--witness", "FILE", |f, v| put(&mut f.witness, Some(Some(v.into())))),
    one("--caps", "LIST", take_caps),
    one("--load", "HOW", |f, v| choose(&mut f.load, LOADS, v)),
    one("--resume", "HOW", |f, v| choose(&mut f.resume, RESUMES, v)),
    one("--cancel", "HOW", |f, v| choose(&mut f.cancel, CANCELS, v)),
    switch("--cancel-request-ignored", Switch::CancelRequestIgnored),
    one("--silent", "PHASE", |f, v| phase(v, &[]).map(|it| f.silent.push(it))),
    Flag { name: "--delay", value: "PHASE MS", take: Take::Two(take_delay) },
    one("--die-at", "STEP", |f, v| phase(v, MOMENTS).map(|it| f.die_at.push(it))),
    one("--die-with", "DEATH", |f, v| put(&mut f.die_with, Death::parse(v))),
    switch("--die-once", Switch::DieOnce),
    one("--exit-before-initialize", "DEATH", |f, v| {
        put(&mut f.exit_before_initialize, Death::parse(v).map(Some))
    }),
    one("--stderr", "TEXT", |f, v| {
        f.stderr.push(v.into());
        Some(())
    }),
    one("--stderr-flood", "BYTES", |f, v| put(&mut f.stderr_flood, v.parse().ok())),
    switch("--banner", Switch::Banner),
    switch("--bom", Switch::Bom),
    switch("--crlf", Switch::Crlf),
    switch("--nulls", Switch::Nulls),
    one("--ids", "KIND", |f, v| choose(&mut f.ids, IDS, v)),
    one("--version", "N", take_version),
    switch("--auth", Switch::Auth),
    switch("--auth-refused", Switch::AuthRefused),
    one("--early-updates", "N", |f, v| put(&mut f.early_updates, v.parse().ok())),
    switch("--same-session-id", Switch::SameSessionId),
    one("--page", "N", |f, v| put(&mut f.page, v.parse().ok())),
    one("--usage", "KIND", |f, v| choose(&mut f.usage, USAGES, v)),
    switch("--echo-user", Switch::EchoUser),
    switch("--ignore-eof", Switch::IgnoreEof),
    switch("--ignore-term", Switch::IgnoreTerm),
    switch("--reexec", Switch::Reexec),
    switch("--relaunch", Switch::Relaunch),
    switch("--grandchild", Switch::Grandchild),
    switch("--grandchild-holds-stdout", Switch::GrandchildHoldsStdout),
    switch("--grandchild-holds-stderr", Switch::GrandchildHoldsStderr),
    switch("--grandchild-clean-env", Switch::GrandchildCleanEnv),
    one("--marker", "TEXT", |f, v| put(&mut f.marker, Some(Some(v.into())))),
    switch("--help", Switch::Help),
];

const LOADS: &[(&str, Load)] = &[
    ("ok", Load::Ok),
    ("null", Load::Null),
    ("empty", Load::Empty),
    ("error-32603", Load::Error32603),
    ("error-32002", Load::Error32002),
    ("error-32602", Load::Error32602),
    ("locked-once", Load::LockedOnce),
    ("pretend", Load::Pretend),
    ("success-for-missing", Load::SuccessForMissing),
    ("replay-then-null", Load::ReplayThenNull),
    ("replay-new-tool-ids", Load::ReplayNewToolIds),
    ("replay-after-answer", Load::ReplayAfterAnswer),
];
const RESUMES: &[(&str, Resume)] = &[
    ("ok", Resume::Ok),
    ("null", Resume::Null),
    ("error", Resume::Error),
    ("pretend", Resume::Pretend),
    ("success-for-missing", Resume::SuccessForMissing),
];
const CANCELS: &[(&str, Cancel)] = &[
    ("honour", Cancel::Honour),
    ("ignore", Cancel::Ignore),
    ("error", Cancel::Error),
    ("die", Cancel::Die),
    ("keep-streaming", Cancel::KeepStreaming),
    ("drain", Cancel::Drain),
];
const USAGES: &[(&str, Usage)] =
    &[("never", Usage::Never), ("current", Usage::Current), ("cumulative", Usage::Cumulative)];
const IDS: &[(&str, Ids)] =
    &[("number", Ids::Number), ("zero", Ids::Zero), ("big", Ids::Big), ("string", Ids::String)];
const CAPS: &[&str] = &["load", "resume", "list", "close", "delete"];

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            switches: BTreeSet::new(),
            state: None,
            witness: None,
            caps: CAPS.iter().map(ToString::to_string).collect(),
            load: Load::Ok,
            resume: Resume::Ok,
            cancel: Cancel::Honour,
            usage: Usage::Never,
            ids: Ids::Number,
            version: Some(1),
            exit_before_initialize: None,
            die_with: Death::Exit(1),
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

impl Flags {
    /// Takes in the arguments after the program's name; says what is wrong with them.
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Flags, String> {
        let mut flags = Flags::default();
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            if name == STRAY {
                let seconds = args.next().and_then(|it| it.parse().ok());
                flags.stray = seconds.map(Duration::from_secs);
                continue;
            }
            let flag = FLAGS.iter().find(|it| it.name == name);
            let flag = flag.ok_or_else(|| format!("no such flag: `{name}`"))?;
            let mut value = || args.next().ok_or_else(|| format!("`{name}` wants {}", flag.value));
            let taken = match flag.take {
                Take::Switch(switch) => {
                    flags.switches.insert(switch);
                    Some(())
                }
                Take::One(take) => take(&mut flags, &value()?),
                Take::Two(take) => {
                    let first = value()?;
                    take(&mut flags, &first, &value()?)
                }
            };
            taken.ok_or_else(|| format!("no such {} for `{name}`", flag.value))?;
        }
        Ok(flags)
    }

    pub(crate) fn on(&self, switch: Switch) -> bool {
        self.switches.contains(&switch)
    }

    pub(crate) fn announces(&self, capability: &str) -> bool {
        self.caps.iter().any(|it| it == capability)
    }

    pub(crate) fn silent_at(&self, phase: &str) -> bool {
        self.silent.iter().any(|it| it == phase)
    }

    pub(crate) fn dies_at(&self, step: &str) -> bool {
        self.die_at.iter().any(|it| it == step)
    }

    pub(crate) fn delay_of(&self, phase: &str) -> Option<Duration> {
        self.delays.iter().find(|(it, _)| it == phase).map(|(_, delay)| *delay)
    }
}

/// The flag an agent gives to the orphans it makes of itself: how many seconds to sleep.
pub(crate) const STRAY: &str = "--stray";

/// Puts a value in its place, if there is one.
fn put<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn choose<T: Copy>(place: &mut T, choices: &[(&str, T)], value: &str) -> Option<()> {
    put(place, choices.iter().find(|(it, _)| *it == value).map(|(_, choice)| *choice))
}

fn phase(value: &str, more: &[&str]) -> Option<String> {
    PHASES.iter().chain(more).find(|it| **it == value).map(ToString::to_string)
}

fn take_caps(flags: &mut Flags, list: &str) -> Option<()> {
    flags.caps = list.split(',').filter(|it| *it != "none").map(ToString::to_string).collect();
    flags.caps.iter().all(|it| CAPS.contains(&it.as_str())).then_some(())
}

fn take_delay(flags: &mut Flags, at: &str, ms: &str) -> Option<()> {
    flags.delays.push((phase(at, &[])?, Duration::from_millis(ms.parse().ok()?)));
    Some(())
}

fn take_version(flags: &mut Flags, value: &str) -> Option<()> {
    flags.version = if value == "echo" { None } else { Some(value.parse().ok()?) };
    Some(())
}
