//! Compares the settings of a running daemon with the current `config.toml`.

use super::Settings;

/// Changed settings by name. Those that a running daemon cannot change need a restart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SettingsChanges {
    pub applied: Vec<&'static str>,
    pub need_restart: Vec<&'static str>,
}

impl Settings {
    /// Applies the settings of `new` that a running daemon can change. The others keep their value,
    /// so that the next comparison names them again.
    pub fn apply_changes(&mut self, new: Settings) -> SettingsChanges {
        let mut changes = SettingsChanges::default();
        apply_setting(&mut changes, "default_agent", &mut self.default_agent, new.default_agent);
        apply_setting(&mut changes, "sandbox", &mut self.sandbox, new.sandbox);
        let layer = &mut self.sandbox_layer;
        apply_setting(&mut changes, "sandbox_layer", layer, new.sandbox_layer);
        apply_setting(&mut changes, "agents", &mut self.agents, new.agents);
        apply_setting(&mut changes, "mcp", &mut self.mcp, new.mcp);
        apply_setting(&mut changes, "sessions", &mut self.sessions, new.sessions);
        apply_setting(&mut changes, "liveness", &mut self.liveness, new.liveness);
        apply_setting(&mut changes, "notify", &mut self.notify, new.notify);
        apply_setting(&mut changes, "tui", &mut self.tui, new.tui);
        let fixed = [
            ("durability", self.durability != new.durability),
            ("idle_after", self.idle_after != new.idle_after),
            ("http", self.http != new.http),
        ];
        let fixed = fixed.into_iter().filter(|(_, differs)| *differs);
        changes.need_restart.extend(fixed.map(|(name, _)| name));
        changes
    }
}

fn apply_setting<T: PartialEq>(
    changes: &mut SettingsChanges,
    name: &'static str,
    old: &mut T,
    new: T,
) {
    if *old != new {
        *old = new;
        changes.applied.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn changes_that_need_a_restart_are_named_each_time_and_others_once() {
        let mut settings = parse("idle_after = 5\n").unwrap();
        let text = "default_agent = \"x\"\ndurability = \"power\"\nidle_after = 6\n\
                    [sessions]\nmax_live = 3\n[agents.x]\ncommand = [\"x\"]\n";
        let changes = settings.apply_changes(parse(text).unwrap());
        assert_eq!(changes.applied, ["default_agent", "agents", "sessions"]);
        assert_eq!(changes.need_restart, ["durability", "idle_after"]);
        assert_eq!(settings.sessions.max_live, 3);
        let again = settings.apply_changes(parse(text).unwrap());
        assert!(again.applied.is_empty());
        assert_eq!(again.need_restart, ["durability", "idle_after"]);
    }
}
