//! `[sessions]` and `[liveness]`: when agents sleep, how many live, and how long they may be silent.

use super::{AgentSettings, Settings, Span};
use jackfield_events::AgentName;
use jackfield_hub::{AgentPool, Config, Liveness, Sleep};
use serde::Deserialize;
use std::{collections::BTreeMap, num::NonZeroUsize};

/// `[sessions]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// An agent that was not used for so long is stopped; the next prompt wakes its session.
    pub idle_after: Option<Span>,
    /// So many agents are alive at a time; 0 is as many as asked for.
    pub max_live: usize,
}

/// `[liveness]`: for each phase how long it may be silent before that is said, and for the phases
/// of a turn (`_max`) before the turn is ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LivenessSettings {
    pub starting: Option<Span>,
    pub initializing: Option<Span>,
    pub opening: Option<Span>,
    pub thinking: Option<Span>,
    pub tool: Option<Span>,
    pub thinking_max: Option<Span>,
    pub tool_max: Option<Span>,
}

impl Settings {
    /// The part of the configuration of the hub that this file has; agents and rules are added by the caller.
    pub(crate) fn hub_config(&self, seed: u64) -> Config {
        Config {
            default_agent: self.default_agent.as_deref().map(Into::into),
            seed,
            sleep: self.sleep(),
            liveness: self.liveness(),
            ..Config::default()
        }
    }

    pub fn sleep(&self) -> Sleep {
        const TEN_MINUTES: Span = Span(Some(600_000));
        let Span(idle_after_ms) = self.sessions.idle_after.unwrap_or(TEN_MINUTES);
        let max_live = Some(self.sessions.max_live).filter(|it| 0 < *it);
        Sleep { idle_after_ms, max_live }
    }

    pub fn liveness(&self) -> Liveness {
        // A phase that is never too long is one of ages.
        let soft = |set: Option<Span>, default: u64| match set {
            Some(Span(ms)) => ms.unwrap_or(u64::MAX),
            None => default,
        };
        let hard = |set: Option<Span>| set.and_then(|Span(ms)| ms);
        let (it, default) = (&self.liveness, Liveness::default());
        Liveness {
            starting_ms: soft(it.starting, default.starting_ms),
            initializing_ms: soft(it.initializing, default.initializing_ms),
            opening_ms: soft(it.opening, default.opening_ms),
            thinking_ms: soft(it.thinking, default.thinking_ms),
            tool_ms: soft(it.tool, default.tool_ms),
            thinking_ms_max: hard(it.thinking_max),
            tool_ms_max: hard(it.tool_max),
        }
    }

    /// How processes are kept, by the name of their agent.
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
    fn what_is_left_out_has_its_default() {
        let settings = parse("").unwrap();
        assert_eq!(settings.sleep().idle_after_ms, Some(600_000));
        assert_eq!(settings.sleep().max_live, None);
        assert_eq!(settings.liveness(), jackfield_hub::Liveness::default());
        assert!(settings.pools().is_empty());
    }

    #[test]
    fn the_daemons_own_rest_and_the_sessions_are_two_things() {
        let text = "idle_after = 5\n[sessions]\nidle_after = \"never\"\nmax_live = 3\n";
        let settings = parse(text).unwrap();
        assert_eq!(settings.idle_after, Some(5));
        assert_eq!(settings.sleep().idle_after_ms, None);
        assert_eq!(settings.sleep().max_live, Some(3));
    }

    #[test]
    fn phases_have_limits_and_a_mistake_is_shown_with_its_line() {
        let settings = parse("[liveness]\ntool = \"20m\"\nthinking_max = \"1h\"\n").unwrap();
        assert_eq!(settings.liveness().tool_ms, 1_200_000);
        assert_eq!(settings.liveness().thinking_ms_max, Some(3_600_000));
        assert_eq!(settings.liveness().tool_ms_max, None);
        let reason = parse("[liveness]\ntool = \"20 minutes\"\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("no duration"), "{reason}");
    }
}
