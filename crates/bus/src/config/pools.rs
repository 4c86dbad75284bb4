//! The pools of a configuration.

use super::flaw::Flaw;
use super::json::{Members, Value};
use super::unknown;
use crate::routing::{
    HealthCheck, PoolConfig, RestartRule, SessionAffinity, WorkerCommand, WorkerDeathRule,
};
use std::path::Path;

/// A process each: more is a slip of the pen.
const INSTANCES_MAX: usize = 4096;
const HEALTH_METHOD: &str = "ping";
const HEALTH_EVERY_MS: u64 = 30_000;
const HEALTH_TIMEOUT_MS: u64 = 10_000;

pub(super) fn read(
    whole: Value<'_>,
    pools: Option<Value<'_>>,
    folder: &Path,
    warnings: &mut Vec<Flaw>,
) -> Result<Vec<PoolConfig>, Flaw> {
    let none = "config: at least one worker pool is required: add one to `pools`";
    let Some(list) = pools else { return Err(whole.flaw(none)) };
    let items =
        list.items().ok_or_else(|| list.flaw("config: `pools` must be a list: write `[{…}]`"))?;
    if items.is_empty() {
        return Err(list.flaw(none));
    }
    let mut pools: Vec<PoolConfig> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let pool = read_one(index, item, folder, warnings)?;
        if pools.iter().any(|it| it.id == pool.id) {
            let id = &pool.id;
            return Err(item.flaw(format!("config: pool id '{id}' stands twice: rename one")));
        }
        pools.push(pool);
    }
    Ok(pools)
}

fn read_one(
    index: usize,
    item: Value<'_>,
    folder: &Path,
    warnings: &mut Vec<Flaw>,
) -> Result<PoolConfig, Flaw> {
    let mut members = item.members(&format!("pool {index}"))?;
    let id = read_id(index, item, members.take("id"))?;
    let pool = Reader { id: &id, pool: item };
    let argv = pool.argv(&mut members)?;
    let instances = pool.instances(members.take("instances"))?;
    let command = WorkerCommand {
        argv,
        env: pool.env(members.take("env"))?,
        cwd: pool.cwd(members.take("cwd"), folder)?,
    };
    let restarts = [
        ("always", RestartRule::Always),
        ("on-failure", RestartRule::OnFailure),
        ("never", RestartRule::Never),
    ];
    let affinities =
        [("session", SessionAffinity::Session), ("connection", SessionAffinity::Connection)];
    let fates = [("move", WorkerDeathRule::Move), ("end", WorkerDeathRule::End)];
    let read = PoolConfig {
        id: id.as_str().into(),
        command: command.into(),
        instances,
        restart: pool.word(&mut members, "restart", &restarts)?,
        affinity: pool.word(&mut members, "affinity", &affinities)?,
        on_death: pool.word(&mut members, "sessions", &fates)?,
        health: pool.health(members.take("health"), warnings)?,
    };
    unknown(members, &format!("pool `{id}`"), warnings);
    Ok(read)
}

fn read_id(index: usize, pool: Value<'_>, id: Option<Value<'_>>) -> Result<String, Flaw> {
    let missing = "missing required 'id' field: name it, so that messages can be for it";
    let id = id.ok_or_else(|| pool.flaw(format!("config: pool {index} {missing}")))?;
    let bad = |what| id.flaw(format!("config: pool {index} has {what}: give it a name"));
    let text = id.string().ok_or_else(|| bad("an 'id' that is no text"))?;
    if text.is_empty() { Err(bad("an empty 'id'")) } else { Ok(text) }
}

/// Reads the members of one pool and names it in what is wrong with them.
struct Reader<'a> {
    id: &'a str,
    pool: Value<'a>,
}

impl Reader<'_> {
    fn flaw(&self, at: Value<'_>, reason: impl AsRef<str>) -> Flaw {
        at.flaw(format!("config: pool '{}'{}", self.id, reason.as_ref()))
    }

    fn argv(&self, members: &mut Members<'_>) -> Result<Vec<String>, Flaw> {
        let missing = " missing required 'command' field: name the program of its workers";
        let command = members.take("command").ok_or_else(|| self.flaw(self.pool, missing))?;
        let program = command.string().filter(|it| !it.is_empty());
        let bad = ": 'command' must be the name of a program: arguments go into `args`";
        let mut argv = vec![program.ok_or_else(|| self.flaw(command, bad))?];
        if let Some(args) = members.take("args") {
            let bad = ": `args` must be a list of texts: write `[\"-u\", \"worker.py\"]`";
            argv.extend(args.get::<Vec<String>>().ok_or_else(|| self.flaw(args, bad))?);
        }
        Ok(argv)
    }

    fn instances(&self, value: Option<Value<'_>>) -> Result<usize, Flaw> {
        let missing = " missing required 'instances' field: say how many workers it has";
        let value = value.ok_or_else(|| self.flaw(self.pool, missing))?;
        let few = " must have at least 1 instance: give a whole number from 1";
        let instances = value.get().filter(|it| 0 < *it).ok_or_else(|| self.flaw(value, few))?;
        if INSTANCES_MAX < instances {
            let many = format!(" wants {instances} instances: {INSTANCES_MAX} are the most");
            return Err(self.flaw(value, many));
        }
        Ok(instances)
    }

    fn env(&self, value: Option<Value<'_>>) -> Result<Vec<(String, String)>, Flaw> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let mut env = Vec::new();
        for (name, value) in value.members(&format!("`env` of pool '{}'", self.id))?.rest() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let bad = format!(": `{name}` is no name of a variable");
                return Err(self.flaw(value, bad));
            }
            let text = value.string().filter(|it| !it.contains('\0'));
            let bad = format!(": `env` must name texts: put the value of `{name}` in quotes");
            env.push((name.into_owned(), text.ok_or_else(|| self.flaw(value, bad))?));
        }
        Ok(env)
    }

    fn cwd(&self, value: Option<Value<'_>>, folder: &Path) -> Result<Option<String>, Flaw> {
        let Some(value) = value else { return Ok(None) };
        let bad = ": `cwd` must be a text: the directory in which its workers start";
        let cwd = value.string().ok_or_else(|| self.flaw(value, bad))?;
        Ok(Some(folder.join(cwd).to_string_lossy().into_owned()))
    }

    /// One of a few words; the first if nothing is said.
    fn word<T: Copy>(
        &self,
        members: &mut Members<'_>,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<T, Flaw> {
        let Some(value) = members.take(name) else { return Ok(words[0].1) };
        let said = value.string();
        let known = words.iter().find(|(word, _)| said.as_deref() == Some(word));
        known.map(|(_, it)| *it).ok_or_else(|| {
            let (last, others) = words.split_last().expect("there are words");
            let others: Vec<_> = others.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let said = said.unwrap_or_else(|| "no text".to_owned());
            let words = format!("write {} or \"{}\"", others.join(", "), last.0);
            self.flaw(value, format!(": `{name}` is `{said}`: {words}"))
        })
    }

    fn health(
        &self,
        value: Option<Value<'_>>,
        warnings: &mut Vec<Flaw>,
    ) -> Result<Option<HealthCheck>, Flaw> {
        let Some(value) = value else { return Ok(None) };
        let what = format!("`health` of pool '{}'", self.id);
        let mut members = value.members(&what)?;
        let method = match members.take("method") {
            None => HEALTH_METHOD.into(),
            Some(method) => {
                let text = method.string().filter(|it| !it.is_empty());
                let bad = ": `method` of `health` must be the name of a method";
                text.ok_or_else(|| self.flaw(method, bad))?.into()
            }
        };
        let mut ms = |name: &str, default| match members.take(name) {
            None => Ok(default),
            Some(value) => {
                super::limits::milliseconds(value).filter(|it| 0 < *it).ok_or_else(|| {
                    let bad = format!(": `{name}` must be a number of seconds above 0");
                    self.flaw(value, bad)
                })
            }
        };
        let every_ms = ms("interval_sec", HEALTH_EVERY_MS)?;
        let timeout_ms = ms("timeout_sec", HEALTH_TIMEOUT_MS)?;
        unknown(members, &what, warnings);
        Ok(Some(HealthCheck { method, every_ms, timeout_ms }))
    }
}
