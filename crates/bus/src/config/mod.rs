//! The configuration of a bus: JSON as the published kernel reads it, and what it lacks beside it.
//!
//! What is wrong is refused with its line; what is not known has no effect and is told with its line.

mod flaw;
mod json;
mod limits;
mod pools;
mod source;

pub use flaw::Flaw;
pub use source::{ConfigError, Source};

use crate::routing as bus;
use json::{Members, Value};
use std::path::Path;

/// What a configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub config: bus::BusConfig,
    /// The longest line of a client or a worker.
    pub frame_bytes_max: usize,
    /// What has no effect.
    pub warnings: Vec<Flaw>,
}

/// Reads a configuration; directories in it are relative to `folder`.
pub fn read(text: &str, folder: &Path) -> Result<Loaded, Flaw> {
    let mut warnings = Vec::new();
    let whole = Value::parse(text)?;
    let mut members = whole.members("the configuration")?;
    let pools = pools::read(whole, members.take("pools"), folder, &mut warnings)?;
    let (limits, frame_bytes_max) = limits::read(members.take("limits"), &mut warnings)?;
    if let Some(transport) = members.take("transport") {
        let reason = "`transport` has no effect: say it with --stdio, --unix or --tcp";
        warnings.push(transport.flaw(reason));
    }
    unknown(members, "the configuration", &mut warnings);
    warnings.sort_by_key(|it| it.line);
    Ok(Loaded { config: bus::BusConfig { pools, limits }, frame_bytes_max, warnings })
}

/// Tells what nobody asked for.
fn unknown(members: Members<'_>, what: &str, warnings: &mut Vec<Flaw>) {
    for (name, value) in members.rest() {
        let reason = format!("`{name}` is not known in {what} and has no effect");
        warnings.push(value.flaw(reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{
        BusLimits, HealthCheck, PoolConfig, RestartRule, SessionAffinity, WorkerCommand,
        WorkerDeathRule,
    };

    fn at_home(text: &str) -> Result<Loaded, Flaw> {
        read(text, Path::new("/home/config"))
    }

    fn refused(text: &str) -> String {
        at_home(text).expect_err(text).to_string()
    }

    #[test]
    fn a_published_configuration_says_what_it_always_said() {
        let text = r#"{"pools":[{"id":"openai-agent","command":"node","args":["./index.js"],"instances":2},
            {"id":"echo","command":"/usr/bin/python3","args":["-u","echo.py"],"instances":1}],
            "limits":{"max_input_buffer":1048576,"max_output_queue":4194304,"max_restarts":5,
            "restart_window_sec":60,"drain_timeout_sec":30,"backpressure_timeout_sec":60}}"#;
        let loaded = at_home(text).unwrap();
        assert_eq!((loaded.warnings.len(), loaded.frame_bytes_max), (0, 1 << 20));
        assert_eq!(loaded.config.limits, BusLimits::default());
        let ids: Vec<_> = loaded.config.pools.iter().map(|it| (&*it.id, it.instances)).collect();
        assert_eq!(ids, [("openai-agent", 2), ("echo", 1)]);
        assert_eq!(loaded.config.pools[0].command.argv, ["node", "./index.js"]);
        assert_eq!(loaded.config.pools[0].command.cwd, None);
        let bare = at_home(r#"{"pools":[{"id":"a","command":"cat","instances":1}]}"#).unwrap();
        assert_eq!((bare.config.limits, bare.frame_bytes_max), (BusLimits::default(), 1 << 20));
    }

    #[test]
    fn everything_else_can_be_said_too() {
        let text = r#"{"pools": [{"id": "mcp", "command": "server", "instances": 3,
            "env": {"KEY": "value"}, "cwd": "below", "restart": "on-failure",
            "affinity": "connection", "sessions": "end",
            "health": {"method": "status", "interval_sec": 0.5, "timeout_sec": 2}}],
            "limits": {"max_sessions": 7, "max_pending": 8, "max_clients": 9,
                       "max_output_queue": 10000, "drain_timeout_sec": 0}}"#;
        let loaded = at_home(text).unwrap();
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
            health: Some(HealthCheck { method: "status".into(), every_ms: 500, timeout_ms: 2000 }),
        };
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
    fn what_is_not_known_has_no_effect_and_is_told_with_its_line() {
        let text = "{\n\"pools\": [{\"id\": \"a\", \"command\": \"cat\", \"instances\": 1,\n\
            \"nice\": 5}],\n\"limits\": {\n\"max_everything\": 1},\n\
            \"transport\": {\"mode\": \"shm\"},\n\"comment\": \"hello\"}";
        let told: Vec<_> =
            at_home(text).unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "line 3: `nice` is not known in pool `a` and has no effect",
                "line 5: `max_everything` is not known in `limits` and has no effect",
                "line 6: `transport` has no effect: say it with --stdio, --unix or --tcp",
                "line 7: `comment` is not known in the configuration and has no effect",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line_and_a_way_out() {
        let pool = |fields: &str| format!("{{\n\"pools\": [\n{{{fields}}}\n]}}");
        let good = r#""id":"a","command":"cat","instances":1"#;
        let cases = [
            (String::new(), "line 1: this is no JSON: EOF while parsing"),
            ("{\"pools\": [\n{\"id\" 1}]}".into(), "line 2: this is no JSON: expected `:`"),
            ("[]".into(), "line 1: config: the configuration must be an object"),
            ("{}".into(), "line 1: config: at least one worker pool is required"),
            ("{\"pools\": []}".into(), "line 1: config: at least one worker pool is required"),
            ("{\"pools\": {}}".into(), "line 1: config: `pools` must be a list"),
            ("{\"pools\": [7]}".into(), "line 1: config: pool 0 must be an object"),
            (pool(""), "line 3: config: pool 0 missing required 'id' field"),
            (pool(r#""id":7"#), "line 3: config: pool 0 has an 'id' that is no text"),
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
                "line 3: config: pool 'a' wants 5000 instances",
            ),
            (pool(&format!("{good},\"args\":[1]")), "`args` must be a list of texts"),
            (pool(&format!("{good},\"args\":\"-u\"")), "`args` must be a list of texts"),
            (pool(&format!("{good},\"env\":{{\"A\":1}}")), "`env` must name texts"),
            (pool(&format!("{good},\"env\":{{\"A=B\":\"\"}}")), "`A=B` is no name of a variable"),
            (pool(&format!("{good},\"cwd\":1")), "`cwd` must be a text"),
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
            (pool(&format!("{good}}},\n{{{good}")), "line 4: config: pool id 'a' stands twice"),
            (pool(&format!("{good},\n\"id\":\"b\"")), "line 4: config: `id` stands twice"),
        ];
        for (text, wanted) in cases {
            let said = refused(&text);
            assert!(said.contains(wanted), "{text}\n{said}");
        }
        for (limit, wanted) in [
            ("\"max_restarts\":-1", "`max_restarts` must be a whole number from 0"),
            ("\"max_input_buffer\":10", "`max_input_buffer` must be a whole number from 1024"),
            ("\"restart_window_sec\":\"60\"", "`restart_window_sec` must be a number of seconds"),
            ("\"max_clients\":0", "`max_clients` must be a whole number from 1"),
        ] {
            let text = format!("{{\"pools\":[{{{good}}}],\n\"limits\":{{\n{limit}}}}}");
            let said = refused(&text);
            assert!(said.starts_with("line 3: config: ") && said.contains(wanted), "{said}");
        }
    }
}
