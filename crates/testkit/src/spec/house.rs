//! How the daemon of a scenario keeps house: `daemon keeps house: sleep after 600s`.

use jackfield_core::{Config, Liveness, Sleep};

#[derive(Default)]
pub(super) struct House {
    sleep: Sleep,
    liveness: Liveness,
    warm: usize,
}

impl House {
    /// Takes one rule in; nothing if it is none.
    pub(super) fn read(&mut self, rule: &str) -> Option<()> {
        match rule.split(' ').collect::<Vec<_>>()[..] {
            ["sleep", "after", time] => self.sleep.idle_after_ms = Some(milliseconds(time)?),
            ["live", "at", "most", count] => self.sleep.max_live = Some(count.parse().ok()?),
            ["warm", count] => self.warm = count.parse().ok()?,
            ["end", "thinking", "after", time] => {
                self.liveness.thinking_ms_max = Some(milliseconds(time)?);
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn configure(&self, config: Config) -> Config {
        let warm = config.agents.keys().map(|it| (it.clone(), self.warm)).collect();
        Config { sleep: self.sleep, liveness: self.liveness, warm, ..config }
    }
}

/// `250ms`, `10s`.
pub(super) fn milliseconds(time: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok();
    let ms = time.strip_suffix("ms").and_then(number);
    ms.or_else(|| time.strip_suffix('s').and_then(number).map(|it| it * 1000))
}
