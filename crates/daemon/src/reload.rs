//! Configuration that changes while the daemon runs: `config.toml` after SIGHUP, and the files of agents and
//! rules whenever they change.

use crate::{config, main_loop::MainLoop};
use jackfield_hub::Input;
use jackfield_protocol::chain;

impl MainLoop {
    /// Applies the configuration as it is now. A file that is not valid leaves everything as it was.
    pub(crate) fn reload(&mut self) {
        self.manager.send_reloading();
        self.read_config();
        self.refresh_files();
        self.manager.send_ready();
    }

    /// Reads the files of agents and rules again if they have changed.
    pub(crate) fn refresh_files(&mut self) {
        if let Some(agents) = self.effects.roster.refresh() {
            let pools = self.effects.roster.pools();
            self.feed(Input::AgentsChanged { agents, pools });
        }
        if let Some(policies) = self.rulebook.refresh(std::iter::empty()) {
            self.feed(Input::PolicyChanged { policies });
        }
    }

    fn read_config(&mut self) {
        let path = self.effects.roster.config_file();
        let settings = match config::load(&path) {
            Ok(settings) => settings,
            Err(error) => {
                let why = chain(&error);
                tracing::error!(why, "the configuration cannot be used; the last one stays");
                return;
            }
        };
        let changes = self.effects.roster.settings_mut().take_changes(settings);
        let settings = self.effects.roster.settings();
        if changes.applied.contains(&"notify") {
            self.notify.change_settings(settings.notify.clone());
        }
        let input = Input::SettingsChanged {
            default_agent: settings.default_agent.as_deref().map(Into::into),
            sleep: settings.sleep(),
            liveness: settings.liveness(),
        };
        let (agents, pools) = (self.effects.roster.launches(), self.effects.roster.pools());
        if !changes.applied.is_empty() {
            self.feed(Input::AgentsChanged { agents, pools });
            self.feed(input);
        }
        let applied = changes.applied.join(", ");
        tracing::info!(changed = applied, "the configuration was read again");
        if !changes.need_restart.is_empty() {
            let settings = changes.need_restart.join(", ");
            tracing::warn!(settings, "these settings have changed and need a restart");
        }
    }
}
