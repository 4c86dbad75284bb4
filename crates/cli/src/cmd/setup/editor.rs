//! The editors: where their settings are, and how an agent is written there.

use clap::ValueEnum;
use jackfield_editor_settings::{EditorAgent, SettingsEntry, elisp_load_line};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SupportedEditor {
    /// Zed: `agent_servers` in `settings.json`
    Zed,
    /// The IDEs of `JetBrains` with AI Assistant: `~/.jetbrains/acp.json`
    Jetbrains,
    /// Neovim with codecompanion.nvim or avante.nvim: `lua/jackfield.lua`
    Neovim,
    /// Emacs with agent-shell: `jackfield.el`
    Emacs,
    /// VS Code, its Insiders version and `VSCodium` with the extension ACP Client: `acp.agents` in `settings.json`
    Vscode,
}

/// Where the settings of an editor are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsLocations {
    /// The settings files of installed editors; for Neovim and Emacs the folders of their init files.
    pub(super) found: Vec<PathBuf>,
    /// All places that were searched.
    pub(super) searched: Vec<PathBuf>,
}

impl SettingsLocations {
    /// Adds the first of these folders that exists, with the path of the settings in it.
    fn add_first(&mut self, folders: impl IntoIterator<Item = PathBuf>, settings: &str) {
        let folders: Vec<PathBuf> = folders.into_iter().collect();
        if let Some(folder) = folders.iter().find(|it| it.is_dir()) {
            let path = if settings.is_empty() { folder.clone() } else { folder.join(settings) };
            self.found.push(path);
        }
        self.searched.extend(folders);
    }
}

/// The variables that say where settings are.
pub(super) type VariableReader<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

impl SupportedEditor {
    pub(super) fn name(self) -> &'static str {
        match self {
            SupportedEditor::Zed => "zed",
            SupportedEditor::Jetbrains => "jetbrains",
            SupportedEditor::Neovim => "neovim",
            SupportedEditor::Emacs => "emacs",
            SupportedEditor::Vscode => "vscode",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            SupportedEditor::Zed => "Zed",
            SupportedEditor::Jetbrains => "JetBrains",
            SupportedEditor::Neovim => "Neovim",
            SupportedEditor::Emacs => "Emacs",
            SupportedEditor::Vscode => "VS Code",
        }
    }

    /// The member of the settings that has the agents, and the usual indentation; `None` if the settings are a program.
    pub(super) fn json_section(self) -> Option<(&'static str, &'static str)> {
        match self {
            SupportedEditor::Zed | SupportedEditor::Jetbrains => Some(("agent_servers", "  ")),
            SupportedEditor::Vscode => Some(("acp.agents", "    ")),
            SupportedEditor::Neovim | SupportedEditor::Emacs => None,
        }
    }

    /// An agent as an entry of the section.
    pub(super) fn make_entry(self, program: &str, agent: &EditorAgent) -> SettingsEntry {
        let mut value = json!({ "command": program, "args": ["acp", agent.id], "env": {} });
        if let (SupportedEditor::Zed, Value::Object(members)) = (self, &mut value) {
            members.shift_insert(0, "type".to_owned(), "custom".into());
        }
        SettingsEntry { name: agent.title.clone(), value }
    }

    /// The settings of each installed edition of the editor. No folder is created.
    pub(super) fn locate_settings(self, var: VariableReader<'_>) -> SettingsLocations {
        let set = |name: &str| var(name).filter(|it| it.is_absolute());
        let home = set("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let library = home.join("Library/Application Support");
        let mut locations = SettingsLocations::default();
        match self {
            SupportedEditor::Zed => {
                // On macOS, Zed does not use the variable.
                locations
                    .add_first([config, home.join(".config")].map(|it| it.join("zed")), SETTINGS);
                locations.add_first([home.join(".var/app/dev.zed.Zed/config/zed")], SETTINGS);
            }
            SupportedEditor::Jetbrains => {
                let own = home.join(".jetbrains");
                let evidence = [own.clone(), config.join("JetBrains"), library.join("JetBrains")];
                if evidence.iter().any(|it| it.is_dir()) {
                    locations.found.push(own.join("acp.json"));
                }
                locations.searched.extend(evidence);
            }
            SupportedEditor::Vscode => {
                for edition in ["Code", "Code - Insiders", "VSCodium", "Code - OSS"] {
                    let folders = [&config, &library].map(|it| it.join(edition).join("User"));
                    locations.add_first(folders, SETTINGS);
                }
            }
            SupportedEditor::Neovim => {
                let name = var("NVIM_APPNAME").filter(|it| !it.as_os_str().is_empty());
                let name = name.unwrap_or_else(|| PathBuf::from("nvim"));
                locations.add_first([config.join(name)], "");
            }
            SupportedEditor::Emacs => {
                let doom = [set("DOOMDIR"), Some(config.join("doom")), Some(home.join(".doom.d"))];
                let plain = [home.join(".emacs.d"), config.join("emacs")];
                locations.add_first(doom.into_iter().flatten().chain(plain), "");
            }
        }
        locations
    }

    /// What the user does next, one step a line; `settings` is the file or folder that was written.
    pub(super) fn describe_next_steps(
        self,
        settings: &Path,
        agents: &[EditorAgent],
    ) -> Vec<String> {
        let id = agents.first().map_or("NAME", |it| it.id.as_str());
        match self {
            SupportedEditor::Zed => {
                vec!["in Zed, open the agent panel and choose the agent behind `+`".to_owned()]
            }
            SupportedEditor::Jetbrains => {
                vec!["in the IDE, open AI Chat and choose the agent in the list of agents".to_owned()]
            }
            SupportedEditor::Vscode => vec![
                "the extension ACP Client uses this setting; if you do not have it: `code --install-extension formulahendry.acp-client`"
                    .to_owned(),
            ],
            SupportedEditor::Neovim if has_lazy_folder(settings) => vec![format!(
                "restart Neovim, then `:CodeCompanionChat adapter={}` or `:AvanteSwitchProvider jackfield-{id}`",
                codecompanion_name(id)
            )],
            SupportedEditor::Neovim => vec![
                "add one of these lines to the setup of your plugin:".to_owned(),
                "  codecompanion.nvim: adapters = { acp = require(\"jackfield\").codecompanion },"
                    .to_owned(),
                "  avante.nvim:        acp_providers = require(\"jackfield\").avante,".to_owned(),
            ],
            SupportedEditor::Emacs => vec![
                "add this line to your init file:".to_owned(),
                format!("  {}", elisp_load_line(&settings.join("jackfield").to_string_lossy())),
            ],
        }
    }
}

const SETTINGS: &str = "settings.json";

/// Whether a folder of Neovim has the plugin specifications of lazy.nvim.
pub(super) fn has_lazy_folder(folder: &Path) -> bool {
    folder.join("lua/plugins").is_dir()
}

/// The name of the adapter in the generated module.
fn codecompanion_name(id: &str) -> String {
    format!("jackfield_{}", id.replace(|it: char| !it.is_ascii_alphanumeric(), "_"))
}
