//! How the daemon of a scenario keeps house: `daemon keeps house: sleep after 600s`.

use jackfield_events::HostId;
use jackfield_hub::{AgentPool, Config, Liveness, Sleep};

#[derive(Default)]
pub(super) struct House {
    sleep: Sleep,
    liveness: Liveness,
    pool: AgentPool,
    host: Option<HostId>,
    forgets: bool,
}

impl House {
    /// Takes one rule in; nothing if it is none.
    pub(super) fn read(&mut self, rule: &str) -> Option<()> {
        match rule.split(' ').collect::<Vec<_>>()[..] {
            ["sleep", "after", time] => self.sleep.idle_after_ms = Some(milliseconds(time)?),
            ["live", "at", "most", count] => self.sleep.max_live = Some(count.parse().ok()?),
            ["called", name] => self.host = Some(name.into()),
            ["forget", "who", "sleeps"] => self.forgets = true,
            ["warm", count] => self.pool.warm = count.parse().ok()?,
            ["sessions", "per", "process", count] => {
                self.pool.sessions_per_process = count.parse().ok()?;
            }
            ["end", "thinking", "after", time] => {
                self.liveness.thinking_ms_max = Some(milliseconds(time)?);
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn configure(&self, config: Config) -> Config {
        let pools = config.agents.keys().map(|it| (it.clone(), self.pool.clone())).collect();
        let (host, keep_asleep) = (self.host.clone(), !self.forgets);
        Config { sleep: self.sleep, liveness: self.liveness, pools, host, keep_asleep, ..config }
    }
}

/// `250ms`, `10s`.
pub(super) fn milliseconds(time: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok();
    let ms = time.strip_suffix("ms").and_then(number);
    ms.or_else(|| time.strip_suffix('s').and_then(number).map(|it| it * 1000))
}
