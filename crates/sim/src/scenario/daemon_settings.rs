//! The configuration of the daemon in a scenario: `daemon config: sleep after 600s`.

use jackfield_events::{AgentName, HostId};
use jackfield_hub::{AgentPool, Config, Launch, Liveness, Sleep};
use std::path::PathBuf;

/// The configured agents; the first is the default.
const AGENTS: [&str; 2] = ["claude", "codex"];

#[derive(Default)]
pub(super) struct DaemonSettings {
    sleep: Sleep,
    liveness: Liveness,
    pool: AgentPool,
    host: Option<HostId>,
    unloads_sleeping: bool,
}

impl DaemonSettings {
    /// Applies one setting; `None` if it is unknown.
    pub(super) fn apply_setting(&mut self, setting: &str) -> Option<()> {
        match setting.split(' ').collect::<Vec<_>>()[..] {
            ["sleep", "after", time] => self.sleep.idle_after_ms = Some(parse_milliseconds(time)?),
            ["live", "agents", count] => self.sleep.max_live = Some(count.parse().ok()?),
            ["host", "name", name] => self.host = Some(name.into()),
            ["unload", "sleeping", "sessions"] => self.unloads_sleeping = true,
            ["warm", count] => self.pool.warm = count.parse().ok()?,
            ["sessions", "per", "process", count] => {
                self.pool.sessions_per_process = count.parse().ok()?;
            }
            ["end", "thinking", "after", time] => {
                self.liveness.thinking_ms_max = Some(parse_milliseconds(time)?);
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn configure(&self, config: Config) -> Config {
        let pools = config.agents.keys().map(|it| (it.clone(), self.pool.clone())).collect();
        let (host, keep_asleep) = (self.host.clone(), !self.unloads_sleeping);
        Config { sleep: self.sleep, liveness: self.liveness, pools, host, keep_asleep, ..config }
    }
}

/// `250ms`, `10s`.
pub(super) fn parse_milliseconds(time: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok();
    let ms = time.strip_suffix("ms").and_then(number);
    ms.or_else(|| time.strip_suffix('s').and_then(number).map(|it| it * 1000))
}

/// The configuration without settings. Each hub of a scenario has another seed.
pub(super) fn base_config(hub_number: u64) -> Config {
    let launch = |name: &str| {
        let name = AgentName::from(name);
        let argv = vec![name.to_string()];
        (
            name.clone(),
            Launch {
                name,
                argv,
                cwd: PathBuf::new(),
                env: None,
                variant: jackfield_hub::VariantChoice::Any,
                sandbox: jackfield_hub::SandboxRequest::default(),
            },
        )
    };
    Config {
        agents: AGENTS.map(launch).into(),
        default_agent: Some(AGENTS[0].into()),
        seed: hub_number,
        ..Config::default()
    }
}
