//! Configuration that changes while the daemon runs: `config.toml` and the files of agents and
//! policies. They are read again when a client connects and they have changed; after SIGHUP,
//! `config.toml` is read in any case.

use super::MainLoop;
use crate::config;
use jackfield_hub::Input;
use jackfield_protocol::chain;
use std::sync::Arc;

impl MainLoop {
    /// Applies the current configuration. An invalid file changes nothing.
    pub(super) fn reload(&mut self) {
        self.manager.send_reloading();
        self.read_config();
        self.refresh_files();
        self.manager.send_ready();
    }

    /// Reads the files again that have changed.
    pub(super) fn refresh_files(&mut self) {
        if self.effects.agent_registry.has_new_config() {
            self.read_config();
        }
        if let Some(agents) = self.effects.agent_registry.refresh() {
            let pools = self.effects.agent_registry.pools();
            self.feed(Input::AgentsChanged { agents, pools });
        }
        if let Some(policies) = self.policy_store.refresh(std::iter::empty()) {
            self.feed(Input::PolicyChanged { policies });
        }
    }

    fn read_config(&mut self) {
        let path = self.effects.agent_registry.config_file();
        let settings = match config::load(&path) {
            Ok(settings) => settings,
            Err(error) => {
                let why = chain(&error);
                tracing::error!(why, "invalid configuration; keeping the old one");
                return;
            }
        };
        let changes = self.effects.agent_registry.settings_mut().apply_changes(settings);
        let settings = self.effects.agent_registry.settings();
        if changes.applied.contains(&"notify") {
            self.notifier.change_settings(settings.notify.clone());
        }
        let input = Input::SettingsChanged {
            default_agent: settings.default_agent.as_deref().map(Into::into),
            sleep: settings.sleep(),
            liveness: settings.liveness(),
            mcp: Arc::new(settings.mcp_config()),
        };
        let (agents, pools) =
            (self.effects.agent_registry.list_launches(), self.effects.agent_registry.pools());
        if !changes.applied.is_empty() {
            self.feed(Input::AgentsChanged { agents, pools });
            self.feed(input);
        }
        let applied = changes.applied.join(", ");
        tracing::info!(changed = applied, "reloaded the configuration");
        if !changes.need_restart.is_empty() {
            let settings = changes.need_restart.join(", ");
            tracing::warn!(settings, "changed settings need a restart");
        }
    }
}
