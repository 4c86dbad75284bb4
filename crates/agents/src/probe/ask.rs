//! The questions to one agent.

use super::{
    Diagnostic, Knowledge, Login, Offered, Source, acp,
    acp::Refused,
    command::{Order, Ran, run},
    diagnostic, models,
    scratch::Scratch,
};
use crate::find::{Found, Places, Via, find_own, find_variant};
use jackfield_catalogue::{Choice, ModelsFrom, Spec};
use std::{collections::BTreeMap, io::ErrorKind, path::Path, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::Instant};

const HELP_MAX: Duration = Duration::from_secs(5);
const LOGIN_MAX: Duration = Duration::from_secs(5);
/// Agents need this long for a first session.
const ACP_MAX: Duration = Duration::from_secs(15);
/// More of a line is no version, and no reason.
const LINE_CHARS_MAX: usize = 120;

pub(super) struct Ask {
    pub(super) spec: Spec,
    pub(super) places: Arc<Places>,
    pub(super) scratch: Arc<Scratch>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) deadline: Option<Instant>,
}

impl Ask {
    /// The version first: a program that cannot even say that is asked nothing else.
    pub(super) async fn all(&self) -> Knowledge {
        let mut knowledge = Knowledge::default();
        let own = find_own(&self.spec, &self.places).ok();
        if let Some(own) = &own {
            match self.version(own).await {
                Ok(version) => knowledge.version = Some(version),
                Err(diagnostic) => knowledge.diagnostics.push(diagnostic),
            }
            if knowledge.is_hopeless() {
                return knowledge;
            }
        }
        let (flags, login, models) =
            tokio::join!(self.flags(), self.login(own.as_ref()), self.models(own.as_ref()));
        knowledge.flags = flags;
        match login {
            Ok(login) => knowledge.login = login,
            Err(diagnostic) => knowledge.diagnostics.push(diagnostic),
        }
        match models {
            Ok(Listed::Offered(offered)) => knowledge.models = Some(offered),
            Ok(Listed::Nothing) => {}
            Ok(Listed::LoginFirst) => {
                knowledge.login = Some(Login::Missing);
                let (why, fix) = ("a session needs a login first", "log in, then ask again");
                knowledge.diagnostics.push(diagnostic::fallback_models(&self.spec, why, fix));
            }
            Err(diagnostic) => knowledge.diagnostics.push(diagnostic),
        }
        if knowledge.login == Some(Login::Missing) {
            knowledge.diagnostics.push(diagnostic::no_login(&self.spec));
        }
        knowledge
    }

    async fn version(&self, own: &Found) -> Result<String, Diagnostic> {
        let probe = &self.spec.version;
        let limit = Duration::from_millis(probe.timeout_ms);
        let shown = shown(&own.path, &probe.args);
        match self.run(own, &probe.args, limit).await {
            Ran::NotStarted(error) => {
                let denied = error.kind() == ErrorKind::PermissionDenied;
                Err(diagnostic::unstartable(&self.spec, &own.path, !denied))
            }
            Ran::Ended { status, .. } if matches!(status.code(), Some(126 | 127)) => {
                let broken = status.code() == Some(127);
                Err(diagnostic::unstartable(&self.spec, &own.path, broken))
            }
            Ran::Ended { status, stdout, stderr } if status.success() => {
                let line = first_line(&stdout).or_else(|| first_line(&stderr));
                line.ok_or_else(|| diagnostic::version_failed(&shown, "it printed nothing"))
            }
            Ran::Ended { status, stdout, stderr } => {
                let said = first_line(&stderr).or_else(|| first_line(&stdout));
                let said = said.map(|it| format!(": {it}")).unwrap_or_default();
                Err(diagnostic::version_failed(&shown, &format!("{status}{said}")))
            }
            Ran::TimedOut => {
                let failed = diagnostic::version_failed(&shown, "it did not end in time");
                // Alone it has more time than among others.
                let alone = format!("jackfield agents show {} --probe", self.spec.id);
                let fix = if self.deadline.is_some() { alone } else { failed.fix.clone() };
                Err(Diagnostic { fix, ..failed })
            }
        }
    }

    /// Which flags each variant has: each help is read once.
    async fn flags(&self) -> Vec<Vec<bool>> {
        let mut helps: BTreeMap<(std::path::PathBuf, Vec<String>), String> = BTreeMap::new();
        let mut all = Vec::new();
        for variant in &self.spec.launch {
            let found = find_variant(&self.spec, variant, &self.places).ok();
            let mut has = Vec::new();
            for flag in &variant.flags {
                let Some(found) = &found else {
                    has.push(false);
                    continue;
                };
                let key = (found.path.clone(), flag.help.clone());
                if !helps.contains_key(&key) {
                    let help = match self.run(found, &flag.help, HELP_MAX).await {
                        Ran::Ended { stdout, stderr, .. } => stdout + &stderr,
                        Ran::TimedOut | Ran::NotStarted(_) => String::new(),
                    };
                    helps.insert(key.clone(), help);
                }
                has.push(helps[&key].contains(&flag.needs));
            }
            all.push(has);
        }
        all
    }

    async fn login(&self, own: Option<&Found>) -> Result<Option<Login>, Diagnostic> {
        let spec = &self.spec;
        let (Some(auth), Some(own)) = (&spec.auth, own) else { return Ok(None) };
        if auth.env.iter().any(|it| self.places.var(it).is_some()) {
            return Ok(None);
        }
        if auth.args.is_empty() {
            return Err(diagnostic::unknown_login(spec, "it has no command that says so"));
        }
        let shown = shown(&own.path, &auth.args);
        match self.run(own, &auth.args, LOGIN_MAX).await {
            Ran::Ended { status, stdout, stderr } => {
                let said = format!("{stdout}\n{stderr}").to_lowercase();
                if auth.missing.iter().any(|it| said.contains(it.as_str())) {
                    return Ok(Some(Login::Missing));
                }
                if status.success() {
                    return Ok(Some(Login::Ok));
                }
                let why = format!("`{shown}` ended with {status}");
                Err(diagnostic::unknown_login(spec, &why))
            }
            Ran::TimedOut => {
                Err(diagnostic::unknown_login(spec, &format!("`{shown}` did not end in time")))
            }
            Ran::NotStarted(error) => {
                Err(diagnostic::unknown_login(spec, &format!("`{shown}`: {error}")))
            }
        }
    }

    /// What the program lists itself; a settings file is read when it is needed.
    async fn models(&self, own: Option<&Found>) -> Result<Listed, Diagnostic> {
        let from = &self.spec.models;
        let source = match from.from {
            None | Some(ModelsFrom::Settings) => return Ok(Listed::Nothing),
            Some(ModelsFrom::Acp) => return self.models_by_acp().await,
            Some(ModelsFrom::Command) => Source::Command,
            Some(ModelsFrom::Help) => Source::Help,
        };
        let failed = |why: &str, fix: String| diagnostic::fallback_models(&self.spec, why, fix);
        let Some(own) = own else {
            let fix = format!("install `{}`", self.spec.bins.join("` or `"));
            return Err(failed("its own program is not there", fix));
        };
        let help = ["--help".to_owned()];
        let args =
            if from.args.is_empty() && source == Source::Help { &help } else { &from.args[..] };
        let shown = shown(&own.path, args);
        let by_hand = || format!("run `{shown}` yourself: it may say more");
        match self.run(own, args, Duration::from_millis(from.timeout_ms)).await {
            Ran::Ended { status, stdout, stderr } => {
                let parse = |it: &str| {
                    let format = from.format?;
                    models::told(source, jackfield_catalogue::parse_models(format, it))
                };
                // Some print their help, and some their lists, on stderr.
                parse(&stdout).or_else(|| parse(&stderr)).map(Listed::Offered).ok_or_else(|| {
                    let said = first_line(&stderr).or_else(|| first_line(&stdout));
                    let said = said.map(|it| format!(": {it}")).unwrap_or_default();
                    failed(&format!("`{shown}` listed none ({status}){said}"), by_hand())
                })
            }
            Ran::TimedOut => {
                Err(failed(&format!("`{shown}` did not end in time"), self.ask_alone()))
            }
            Ran::NotStarted(error) => Err(failed(&format!("`{shown}`: {error}"), by_hand())),
        }
    }

    async fn models_by_acp(&self) -> Result<Listed, Diagnostic> {
        let failed = |why: &str| {
            let fix = "run it in a terminal: it may want a login or settings first";
            diagnostic::fallback_models(&self.spec, why, fix)
        };
        let natives = self.spec.launch.iter().filter(|it| it.speaks_acp());
        let mut found =
            natives.filter_map(|it| Some((it, find_variant(&self.spec, it, &self.places).ok()?)));
        let Some((variant, found)) = found.next() else {
            return Err(failed("none of its programs speaks ACP here"));
        };
        let cwd = self.scratch.path();
        let choice = Choice { cwd: cwd.to_str().unwrap_or("/"), ..Choice::default() };
        let args = variant.argv(&choice).map_err(|it| failed(&it.to_string()))?;
        let Some((_permit, limit)) = self.turn(ACP_MAX).await else {
            let why = "there was no time left to ask";
            return Err(diagnostic::fallback_models(&self.spec, why, self.ask_alone()));
        };
        let env = self.env(&found);
        let order = Order { program: &found.path, args: &args, env: &env, cwd };
        match acp::offer(order, limit).await {
            Ok(offer) => {
                let offered = models::told(Source::Acp, offer.models);
                let offered = offered.map(|it| Offered { current: offer.current, ..it });
                offered.map(Listed::Offered).ok_or_else(|| failed("a session of it lists none"))
            }
            Err(Refused::LoginFirst) => Ok(Listed::LoginFirst),
            Err(Refused::Late(why)) => {
                Err(diagnostic::fallback_models(&self.spec, &why, self.ask_alone()))
            }
            Err(Refused::Other(why)) => Err(failed(&why)),
        }
    }

    /// What to do about an agent that was too slow.
    fn ask_alone(&self) -> String {
        match self.deadline {
            Some(_) => format!("jackfield models {} --probe", self.spec.id),
            None => "run it in a terminal: it may wait for something".to_owned(),
        }
    }

    async fn run(&self, found: &Found, args: &[String], limit: Duration) -> Ran {
        let Some((_permit, limit)) = self.turn(limit).await else { return Ran::TimedOut };
        let (env, cwd) = (self.env(found), self.scratch.path());
        run(Order { program: &found.path, args, env: &env, cwd }, limit).await
    }

    /// Waits to be one of the few that run; then says how long that may last.
    async fn turn(&self, limit: Duration) -> Option<(tokio::sync::OwnedSemaphorePermit, Duration)> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let permit = match self.deadline {
            Some(until) => tokio::time::timeout(left(until), waiting).await.ok()?.ok()?,
            None => waiting.await.ok()?,
        };
        let limit = self.deadline.map_or(limit, |until| limit.min(left(until)));
        (!limit.is_zero()).then_some((permit, limit))
    }

    fn env(&self, found: &Found) -> Vec<(String, String)> {
        environment(&self.spec, found, &self.places)
    }
}

/// The environment of an agent's program. One that was found beside `PATH` also finds what is there.
pub fn environment(spec: &Spec, found: &Found, places: &Places) -> Vec<(String, String)> {
    let mut env = spec.env.compose(places.env());
    if found.via != Via::Path {
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".to_owned(), places.wide_path()));
    }
    env
}

enum Listed {
    Offered(Offered),
    /// There is no list to ask for.
    Nothing,
    LoginFirst,
}

fn shown(program: &Path, args: &[String]) -> String {
    Order { program, args, env: &[], cwd: program }.shown()
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|it| !it.is_empty())?;
    Some(line.chars().filter(|it| !it.is_control()).take(LINE_CHARS_MAX).collect())
}
