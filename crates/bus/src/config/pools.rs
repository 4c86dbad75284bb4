//! Reads `pools`.

use super::json::{ObjectMembers, PositionedValue};
use super::problem::ConfigProblem;
use super::warn_unknown;
use crate::routing::{
    HealthCheck, OuterSessionId, PoolConfig, RestartRule, SessionAffinity, WorkerCommand,
    WorkerDeathRule,
};
use std::path::Path;

/// Each instance is a process; a larger number is a typing error.
const INSTANCES_MAX: usize = 4096;
const HEALTH_METHOD: &str = "ping";
const HEALTH_EVERY_MS: u64 = 30_000;
const HEALTH_TIMEOUT_MS: u64 = 10_000;

pub(super) fn read_pools(
    whole: PositionedValue<'_>,
    pools: Option<PositionedValue<'_>>,
    folder: &Path,
    warnings: &mut Vec<ConfigProblem>,
) -> Result<Vec<PoolConfig>, ConfigProblem> {
    let no_pools = "config: at least one worker pool is required: add one to `pools`";
    let Some(list) = pools else { return Err(whole.problem(no_pools)) };
    let items = list
        .items()
        .ok_or_else(|| list.problem("config: `pools` must be a list: write `[{…}]`"))?;
    if items.is_empty() {
        return Err(list.problem(no_pools));
    }
    let mut pools: Vec<PoolConfig> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let pool = read_pool(index, item, folder, warnings)?;
        if pools.iter().any(|it| it.id == pool.id) {
            let id = &pool.id;
            return Err(item.problem(format!("config: duplicate pool id '{id}': rename one")));
        }
        pools.push(pool);
    }
    Ok(pools)
}

fn read_pool(
    index: usize,
    item: PositionedValue<'_>,
    folder: &Path,
    warnings: &mut Vec<ConfigProblem>,
) -> Result<PoolConfig, ConfigProblem> {
    let mut members = item.members(&format!("pool {index}"))?;
    let id = read_id(index, item, members.take_member("id"))?;
    let pool = PoolReader { id: &id, pool: item };
    let argv = pool.read_argv(&mut members)?;
    let instances = pool.read_instances(members.take_member("instances"))?;
    let command = WorkerCommand {
        argv,
        env: pool.read_env(members.take_member("env"))?,
        cwd: pool.read_cwd(members.take_member("cwd"), folder)?,
    };
    let restarts = [
        ("always", RestartRule::Always),
        ("on-failure", RestartRule::OnFailure),
        ("never", RestartRule::Never),
    ];
    let affinities =
        [("session", SessionAffinity::Session), ("connection", SessionAffinity::Connection)];
    let death_rules = [("move", WorkerDeathRule::Move), ("end", WorkerDeathRule::End)];
    let outer_ids = [("forward", OuterSessionId::Forward), ("restore", OuterSessionId::Restore)];
    let config = PoolConfig {
        id: id.as_str().into(),
        command: command.into(),
        instances,
        restart: pool.read_keyword(&mut members, "restart", &restarts)?,
        affinity: pool.read_keyword(&mut members, "affinity", &affinities)?,
        on_death: pool.read_keyword(&mut members, "sessions", &death_rules)?,
        outer_session_id: pool.read_keyword(&mut members, "outer_session_id", &outer_ids)?,
        health: pool.read_health(members.take_member("health"), warnings)?,
    };
    warn_unknown(members, &format!("pool `{id}`"), warnings);
    Ok(config)
}

fn read_id(
    index: usize,
    pool: PositionedValue<'_>,
    id: Option<PositionedValue<'_>>,
) -> Result<String, ConfigProblem> {
    let missing = "missing required 'id' field: messages address the pool by it";
    let id = id.ok_or_else(|| pool.problem(format!("config: pool {index} {missing}")))?;
    let reason = |what| id.problem(format!("config: pool {index} has {what}: give it a name"));
    let text = id.string().ok_or_else(|| reason("an 'id' that is not a string"))?;
    if text.is_empty() { Err(reason("an empty 'id'")) } else { Ok(text) }
}

/// Reads the members of one pool and names the pool in errors.
struct PoolReader<'a> {
    id: &'a str,
    pool: PositionedValue<'a>,
}

impl PoolReader<'_> {
    fn problem(&self, value: PositionedValue<'_>, reason: impl AsRef<str>) -> ConfigProblem {
        value.problem(format!("config: pool '{}'{}", self.id, reason.as_ref()))
    }

    fn read_argv(&self, members: &mut ObjectMembers<'_>) -> Result<Vec<String>, ConfigProblem> {
        let missing = " missing required 'command' field: set it to the program of its workers";
        let command =
            members.take_member("command").ok_or_else(|| self.problem(self.pool, missing))?;
        let program = command.string().filter(|it| !it.is_empty());
        let reason = ": 'command' must be the name of a program: arguments go into `args`";
        let mut argv = vec![program.ok_or_else(|| self.problem(command, reason))?];
        if let Some(args) = members.take_member("args") {
            let reason = ": `args` must be a list of strings: write `[\"-u\", \"worker.py\"]`";
            argv.extend(
                args.read_owned::<Vec<String>>().ok_or_else(|| self.problem(args, reason))?,
            );
        }
        Ok(argv)
    }

    fn read_instances(&self, value: Option<PositionedValue<'_>>) -> Result<usize, ConfigProblem> {
        let missing = " missing required 'instances' field: set it to the number of workers";
        let value = value.ok_or_else(|| self.problem(self.pool, missing))?;
        let too_few = " must have at least 1 instance: give a whole number from 1";
        let instances =
            value.read_owned().filter(|it| 0 < *it).ok_or_else(|| self.problem(value, too_few))?;
        if INSTANCES_MAX < instances {
            let too_many = format!(" has {instances} instances: the limit is {INSTANCES_MAX}");
            return Err(self.problem(value, too_many));
        }
        Ok(instances)
    }

    fn read_env(
        &self,
        value: Option<PositionedValue<'_>>,
    ) -> Result<Vec<(String, String)>, ConfigProblem> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let mut env = Vec::new();
        for (name, value) in value.members(&format!("`env` of pool '{}'", self.id))?.into_rest() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let reason = format!(": `{name}` is not a variable name");
                return Err(self.problem(value, reason));
            }
            let text = value.string().filter(|it| !it.contains('\0'));
            let reason =
                format!(": `env` values must be strings: put the value of `{name}` in quotes");
            env.push((name.into_owned(), text.ok_or_else(|| self.problem(value, reason))?));
        }
        Ok(env)
    }

    fn read_cwd(
        &self,
        value: Option<PositionedValue<'_>>,
        folder: &Path,
    ) -> Result<Option<String>, ConfigProblem> {
        let Some(value) = value else { return Ok(None) };
        let reason = ": `cwd` must be a string: the directory in which its workers start";
        let cwd = value.string().ok_or_else(|| self.problem(value, reason))?;
        Ok(Some(folder.join(cwd).to_string_lossy().into_owned()))
    }

    /// One of several keywords; the first one is the default.
    fn read_keyword<T: Copy>(
        &self,
        members: &mut ObjectMembers<'_>,
        name: &str,
        keywords: &[(&str, T)],
    ) -> Result<T, ConfigProblem> {
        let Some(value) = members.take_member(name) else { return Ok(keywords[0].1) };
        let value_text = value.string();
        let keyword = keywords.iter().find(|(keyword, _)| value_text.as_deref() == Some(keyword));
        keyword.map(|(_, it)| *it).ok_or_else(|| {
            let (last, others) = keywords.split_last().expect("there are words");
            let others: Vec<_> =
                others.iter().map(|(keyword, _)| format!("\"{keyword}\"")).collect();
            let value_text = value_text.unwrap_or_else(|| "not a string".to_owned());
            let keywords = format!("write {} or \"{}\"", others.join(", "), last.0);
            self.problem(value, format!(": `{name}` is `{value_text}`: {keywords}"))
        })
    }

    fn read_health(
        &self,
        value: Option<PositionedValue<'_>>,
        warnings: &mut Vec<ConfigProblem>,
    ) -> Result<Option<HealthCheck>, ConfigProblem> {
        let Some(value) = value else { return Ok(None) };
        let what = format!("`health` of pool '{}'", self.id);
        let mut members = value.members(&what)?;
        let method = match members.take_member("method") {
            None => HEALTH_METHOD.into(),
            Some(method) => {
                let text = method.string().filter(|it| !it.is_empty());
                let reason = ": `method` of `health` must be the name of a method";
                text.ok_or_else(|| self.problem(method, reason))?.into()
            }
        };
        let mut ms = |name: &str, default| match members.take_member(name) {
            None => Ok(default),
            Some(value) => {
                super::limits::milliseconds(value).filter(|it| 0 < *it).ok_or_else(|| {
                    let reason = format!(": `{name}` must be a number of seconds above 0");
                    self.problem(value, reason)
                })
            }
        };
        let every_ms = ms("interval_sec", HEALTH_EVERY_MS)?;
        let timeout_ms = ms("timeout_sec", HEALTH_TIMEOUT_MS)?;
        warn_unknown(members, &what, warnings);
        Ok(Some(HealthCheck { method, every_ms, timeout_ms }))
    }
}
