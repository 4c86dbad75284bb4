//! `[sessions]` and `[liveness]`: idle timeout, number of live agents, and limits of silence.

use super::{AgentSettings, DurationSetting, Settings};
use jackfield_events::AgentName;
use jackfield_hub::{AgentPool, Config, Liveness, Sleep};
use serde::Deserialize;
use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc};

/// `[sessions]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// An agent that was not used for this long is stopped; the next prompt starts it again.
    pub idle_after: Option<DurationSetting>,
    /// The maximum number of live agents; 0 means unlimited.
    pub max_live: usize,
}

/// `[liveness]`: for each phase how long it may take before that is reported, and how long at most
/// (`_max`) before the start fails or the turn is ended. Phases of a turn are counted from the last
/// message of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LivenessSettings {
    pub starting: Option<DurationSetting>,
    pub initializing: Option<DurationSetting>,
    pub opening: Option<DurationSetting>,
    pub thinking: Option<DurationSetting>,
    pub tool: Option<DurationSetting>,
    pub starting_max: Option<DurationSetting>,
    pub initializing_max: Option<DurationSetting>,
    pub opening_max: Option<DurationSetting>,
    pub setting_max: Option<DurationSetting>,
    pub thinking_max: Option<DurationSetting>,
    pub tool_max: Option<DurationSetting>,
}

impl Settings {
    /// The hub configuration of this file; the caller adds agents and policies.
    pub(crate) fn hub_config(&self, seed: u64) -> Config {
        Config {
            default_agent: self.default_agent.as_deref().map(Into::into),
            seed,
            sleep: self.sleep(),
            liveness: self.liveness(),
            mcp: Arc::new(self.mcp_config()),
            ..Config::default()
        }
    }

    pub fn sleep(&self) -> Sleep {
        const TEN_MINUTES: DurationSetting = DurationSetting(Some(600_000));
        let DurationSetting(idle_after_ms) = self.sessions.idle_after.unwrap_or(TEN_MINUTES);
        let max_live = Some(self.sessions.max_live).filter(|it| 0 < *it);
        Sleep { idle_after_ms, max_live }
    }

    pub fn liveness(&self) -> Liveness {
        // `never` becomes the maximum.
        let soft = |set: Option<DurationSetting>, default: u64| match set {
            Some(DurationSetting(ms)) => ms.unwrap_or(u64::MAX),
            None => default,
        };
        let hard = |set: Option<DurationSetting>, default: Option<u64>| match set {
            Some(DurationSetting(ms)) => ms,
            None => default,
        };
        let (it, default) = (&self.liveness, Liveness::default());
        Liveness {
            starting_ms: soft(it.starting, default.starting_ms),
            initializing_ms: soft(it.initializing, default.initializing_ms),
            opening_ms: soft(it.opening, default.opening_ms),
            thinking_ms: soft(it.thinking, default.thinking_ms),
            tool_ms: soft(it.tool, default.tool_ms),
            starting_ms_max: hard(it.starting_max, default.starting_ms_max),
            initializing_ms_max: hard(it.initializing_max, default.initializing_ms_max),
            opening_ms_max: hard(it.opening_max, default.opening_ms_max),
            setting_ms_max: hard(it.setting_max, default.setting_ms_max),
            thinking_ms_max: hard(it.thinking_max, default.thinking_ms_max),
            tool_ms_max: hard(it.tool_max, default.tool_ms_max),
        }
    }

    /// The process pools, by agent.
    pub fn pools(&self) -> BTreeMap<AgentName, AgentPool> {
        let pool = |it: &AgentSettings| AgentPool {
            warm: it.warm,
            sessions_per_process: it.sessions_per_process.map_or(1, NonZeroUsize::get),
            fallback: it.fallback.as_deref().map(Into::into),
        };
        self.agents.iter().map(|(name, it)| (name.as_str().into(), pool(it))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn omitted_settings_have_defaults() {
        let settings = parse("").unwrap();
        assert_eq!(settings.sleep().idle_after_ms, Some(600_000));
        assert_eq!(settings.sleep().max_live, None);
        assert_eq!(settings.liveness(), jackfield_hub::Liveness::default());
        assert!(settings.pools().is_empty());
    }

    #[test]
    fn idle_timeouts_of_daemon_and_sessions_are_independent() {
        let text = "idle_after = 5\n[sessions]\nidle_after = \"never\"\nmax_live = 3\n";
        let settings = parse(text).unwrap();
        assert_eq!(settings.idle_after, Some(5));
        assert_eq!(settings.sleep().idle_after_ms, None);
        assert_eq!(settings.sleep().max_live, Some(3));
    }

    #[test]
    fn liveness_limits_are_read_and_mistakes_have_a_line() {
        let text = "[liveness]\ntool = \"20m\"\nthinking_max = \"1h\"\nopening_max = \"never\"\n";
        let liveness = parse(text).unwrap().liveness();
        assert_eq!(liveness.tool_ms, 1_200_000);
        assert_eq!(liveness.thinking_ms_max, Some(3_600_000));
        assert_eq!((liveness.tool_ms_max, liveness.opening_ms_max), (None, None));
        assert_eq!(liveness.initializing_ms_max, Some(60_000));
        let reason = parse("[liveness]\ntool = \"20 minutes\"\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("not a duration"), "{reason}");
    }
}
