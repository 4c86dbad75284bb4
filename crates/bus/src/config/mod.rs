//! The configuration file of a bus: the JSON format of the published kernel, with additions.
//!
//! Invalid values are refused with their line; unknown members are ignored with a warning.

mod json;
mod launcher;
mod limits;
mod pools;
mod problem;
mod source;

pub use problem::ConfigProblem;
pub use source::{BusConfigError, ConfigSource};

use crate::routing as bus;
use json::{ObjectMembers, PositionedValue};
use launcher::LauncherSettings;
use std::path::Path;

/// A configuration file after it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedConfig {
    pub config: bus::BusConfig,
    /// The longest line of a client or a worker.
    pub frame_bytes_max: usize,
    /// Unencrypted addresses may be reachable from other machines.
    pub insecure: bool,
    /// Members that have no effect.
    pub warnings: Vec<ConfigProblem>,
}

/// Reads a configuration, and its launcher, whose agents are not known yet. Directories are relative
/// to `folder`.
fn read_config(
    text: &str,
    folder: &Path,
) -> Result<(LoadedConfig, Option<LauncherSettings>), ConfigProblem> {
    let mut warnings = Vec::new();
    let whole = PositionedValue::parse(text)?;
    let mut members = whole.members("the configuration")?;
    let launcher = launcher::read_launcher(members.take_member("launcher"), folder, &mut warnings)?;
    let pools = match members.take_member("pools") {
        None if launcher.is_some() => Vec::new(),
        pools => pools::read_pools(whole, pools, folder, &mut warnings)?,
    };
    let (limits, frame_bytes_max) =
        limits::read_limits(members.take_member("limits"), &mut warnings)?;
    let insecure = read_insecure(members.take_member("insecure"))?;
    if let Some(transport) = members.take_member("transport") {
        let reason = "`transport` has no effect: use --stdio, --unix or --tcp";
        warnings.push(transport.problem(reason));
    }
    warn_unknown(members, "the configuration", &mut warnings);
    warnings.sort_by_key(|it| it.line);
    let config = bus::BusConfig { pools, limits, launcher: None };
    Ok((LoadedConfig { config, frame_bytes_max, insecure, warnings }, launcher))
}

fn read_insecure(value: Option<PositionedValue<'_>>) -> Result<bool, ConfigProblem> {
    let Some(value) = value else { return Ok(false) };
    let reason = "config: `insecure` must be `true` or `false`";
    value.read_owned().ok_or_else(|| value.problem(reason))
}

/// Adds a warning for each member that was not read.
fn warn_unknown(members: ObjectMembers<'_>, what: &str, warnings: &mut Vec<ConfigProblem>) {
    for (name, value) in members.into_rest() {
        let reason = format!("unknown `{name}` in {what} has no effect");
        warnings.push(value.problem(reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{
        BusLimits, HealthCheck, OuterSessionId, PoolConfig, RestartRule, SessionAffinity,
        WorkerCommand, WorkerDeathRule,
    };

    fn read_at_home(text: &str) -> Result<LoadedConfig, ConfigProblem> {
        read_config(text, Path::new("/home/config")).map(|(loaded, _)| loaded)
    }

    fn read_error(text: &str) -> String {
        read_at_home(text).expect_err(text).to_string()
    }

    #[test]
    fn configuration_of_the_published_kernel_is_read() {
        let text = r#"{"pools":[{"id":"openai-agent","command":"node","args":["./index.js"],"instances":2},
            {"id":"echo","command":"/usr/bin/python3","args":["-u","echo.py"],"instances":1}],
            "limits":{"max_input_buffer":1048576,"max_output_queue":4194304,"max_restarts":5,
            "restart_window_sec":60,"drain_timeout_sec":30,"backpressure_timeout_sec":60}}"#;
        let loaded = read_at_home(text).unwrap();
        assert_eq!((loaded.warnings.len(), loaded.frame_bytes_max), (0, 1 << 20));
        assert_eq!(loaded.config.limits, BusLimits::default());
        let ids: Vec<_> = loaded.config.pools.iter().map(|it| (&*it.id, it.instances)).collect();
        assert_eq!(ids, [("openai-agent", 2), ("echo", 1)]);
        assert_eq!(loaded.config.pools[0].command.argv, ["node", "./index.js"]);
        assert_eq!(loaded.config.pools[0].command.cwd, None);
        let bare = read_at_home(r#"{"pools":[{"id":"a","command":"cat","instances":1}]}"#).unwrap();
        assert_eq!((bare.config.limits, bare.frame_bytes_max), (BusLimits::default(), 1 << 20));
    }

    #[test]
    fn additional_members_are_read() {
        let text = r#"{"pools": [{"id": "mcp", "command": "server", "instances": 3,
            "env": {"KEY": "value"}, "cwd": "below", "restart": "on-failure",
            "affinity": "connection", "sessions": "end",
            "outer_session_id": "restore",
            "health": {"method": "status", "interval_sec": 0.5, "timeout_sec": 2}}],
            "insecure": true, "limits": {"max_sessions": 7, "max_pending": 8, "max_clients": 9,
                       "max_output_queue": 10000, "drain_timeout_sec": 0}}"#;
        let loaded = read_at_home(text).unwrap();
        let pool = PoolConfig {
            id: "mcp".into(),
            command: WorkerCommand {
                argv: vec!["server".into()],
                env: vec![("KEY".into(), "value".into())],
                cwd: Some("/home/config/below".into()),
            }
            .into(),
            instances: 3,
            restart: RestartRule::OnFailure,
            affinity: SessionAffinity::Connection,
            on_death: WorkerDeathRule::End,
            outer_session_id: OuterSessionId::Restore,
            health: Some(HealthCheck { method: "status".into(), every_ms: 500, timeout_ms: 2000 }),
        };
        assert!(loaded.insecure);
        assert_eq!(loaded.config.pools, [pool]);
        let limits = BusLimits {
            sessions_max: 7,
            pending_max: 8,
            clients_max: 9,
            outbox_bytes_max: 10_000,
            drain_ms: 0,
            ..BusLimits::default()
        };
        assert_eq!(loaded.config.limits, limits);
        assert_eq!(loaded.warnings, []);
    }

    #[test]
    fn unknown_members_are_warned_about_with_their_line() {
        let text = "{\n\"pools\": [{\"id\": \"a\", \"command\": \"cat\", \"instances\": 1,\n\
            \"nice\": 5}],\n\"limits\": {\n\"max_everything\": 1},\n\
            \"transport\": {\"mode\": \"shm\"},\n\"comment\": \"hello\"}";
        let warnings: Vec<_> =
            read_at_home(text).unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "line 3: unknown `nice` in pool `a` has no effect",
                "line 5: unknown `max_everything` in `limits` has no effect",
                "line 6: `transport` has no effect: use --stdio, --unix or --tcp",
                "line 7: unknown `comment` in the configuration has no effect",
            ]
        );
    }

    #[test]
    fn invalid_values_are_refused_with_line_and_hint() {
        let pool = |fields: &str| format!("{{\n\"pools\": [\n{{{fields}}}\n]}}");
        let good = r#""id":"a","command":"cat","instances":1"#;
        let cases = [
            (String::new(), "line 1: invalid JSON: EOF while parsing"),
            ("{\"pools\": [\n{\"id\" 1}]}".into(), "line 2: invalid JSON: expected `:`"),
            ("[]".into(), "line 1: config: the configuration must be an object"),
            ("{}".into(), "line 1: config: at least one worker pool is required"),
            ("{\"pools\": []}".into(), "line 1: config: at least one worker pool is required"),
            ("{\"pools\": {}}".into(), "line 1: config: `pools` must be a list"),
            ("{\"pools\": [7]}".into(), "line 1: config: pool 0 must be an object"),
            (
                "{\"insecure\": 1, \"pools\": [{\"id\":\"a\",\"command\":\"cat\",\"instances\":1}]}".into(),
                "line 1: config: `insecure` must be",
            ),
            (pool(""), "line 3: config: pool 0 missing required 'id' field"),
            (pool(r#""id":7"#), "line 3: config: pool 0 has an 'id' that is not a string"),
            (pool(r#""id":"""#), "line 3: config: pool 0 has an empty 'id'"),
            (pool(r#""id":"a""#), "line 3: config: pool 'a' missing required 'command' field"),
            (
                pool(r#""id":"a","command":"cat""#),
                "line 3: config: pool 'a' missing required 'instances' field",
            ),
            (
                pool(r#""id":"a","command":"cat","instances":0"#),
                "line 3: config: pool 'a' must have at least 1 instance",
            ),
            (
                pool(r#""id":"a","command":"cat","instances":1.5"#),
                "line 3: config: pool 'a' must have at least 1 instance",
            ),
            (
                pool(r#""id":"a","command":"cat","instances":5000"#),
                "line 3: config: pool 'a' has 5000 instances",
            ),
            (pool(&format!("{good},\"args\":[1]")), "`args` must be a list of strings"),
            (pool(&format!("{good},\"args\":\"-u\"")), "`args` must be a list of strings"),
            (pool(&format!("{good},\"env\":{{\"A\":1}}")), "`env` values must be strings"),
            (pool(&format!("{good},\"env\":{{\"A=B\":\"\"}}")), "`A=B` is not a variable name"),
            (pool(&format!("{good},\"cwd\":1")), "`cwd` must be a string"),
            (
                pool(&format!("{good},\n\"restart\":\"often\"")),
                "line 4: config: pool 'a': `restart` is `often`: write \"always\", \
                 \"on-failure\" or \"never\"",
            ),
            (pool(&format!("{good},\"affinity\":1")), "write \"session\" or \"connection\""),
            (pool(&format!("{good},\"sessions\":\"keep\"")), "write \"move\" or \"end\""),
            (pool(&format!("{good},\"health\":true")), "`health` of pool 'a' must be an object"),
            (
                pool(&format!("{good},\"health\":{{\"interval_sec\":0}}")),
                "`interval_sec` must be a number of seconds above 0",
            ),
            (pool(&format!("{good}}},\n{{{good}")), "line 4: config: duplicate pool id 'a'"),
            (pool(&format!("{good},\n\"id\":\"b\"")), "line 4: config: duplicate `id`"),
        ];
        for (text, expected) in cases {
            let error = read_error(&text);
            assert!(error.contains(expected), "{text}\n{error}");
        }
        for (limit, expected) in [
            ("\"max_restarts\":-1", "`max_restarts` must be a whole number from 0"),
            ("\"max_input_buffer\":10", "`max_input_buffer` must be a whole number from 1024"),
            ("\"restart_window_sec\":\"60\"", "`restart_window_sec` must be a number of seconds"),
            ("\"max_clients\":0", "`max_clients` must be a whole number from 1"),
        ] {
            let text = format!("{{\"pools\":[{{{good}}}],\n\"limits\":{{\n{limit}}}}}");
            let error = read_error(&text);
            assert!(error.starts_with("line 3: config: ") && error.contains(expected), "{error}");
        }
    }
}
