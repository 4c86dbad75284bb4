//! The flags for a session and its prompt: model, mode, reasoning, directories, images.

use super::{RunCommand, image, launch::AgentLaunch, target::TargetSession};
use crate::{
    env,
    hub::{CommandConnection, ResponseWait, resolve_directory},
    report::{CommandError, list_as_causes},
};
use clap::Args;
use jackfield_protocol::acp::Method;
use jackfield_views::options::{self, SessionSetting, SettingError};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct SessionSettingsArgs {
    /// The model: an id or name that the agent offers, or another id that it supports
    #[arg(short, long, env = env::MODEL, hide_env_values = true)]
    model: Option<String>,

    /// The mode: an id or name that the agent offers
    #[arg(long, env = env::MODE, hide_env_values = true)]
    mode: Option<String>,

    /// The reasoning effort: a level that the agent offers
    #[arg(long, env = env::REASONING, hide_env_values = true, value_name = "LEVEL")]
    reasoning: Option<String>,

    /// An additional directory that the agent may use; can be repeated
    #[arg(long, env = env::ADD_DIR, hide_env_values = true, value_name = "DIR")]
    add_dir: Vec<PathBuf>,

    /// An image for the prompt: PNG, JPEG, GIF or WebP; can be repeated
    #[arg(long, env = env::IMAGE, hide_env_values = true, value_name = "FILE")]
    image: Vec<PathBuf>,
}

impl SessionSettingsArgs {
    /// The images as content blocks.
    pub(super) fn image_blocks(&self) -> Result<Vec<Value>, CommandError> {
        image::read_image_blocks(&self.image)
    }

    /// The absolute paths of the additional directories.
    pub(super) fn directories(&self) -> Result<Vec<PathBuf>, CommandError> {
        self.add_dir.iter().map(|it| resolve_directory(it, "--add-dir")).collect()
    }

    /// Rejects flags that the agent's capabilities do not cover.
    pub(super) fn check_capabilities(
        &self,
        agent: &str,
        initialize_result: &Value,
    ) -> Result<(), CommandError> {
        let capabilities = &initialize_result["agentCapabilities"];
        if !self.image.is_empty() && capabilities["promptCapabilities"]["image"] != true {
            let message = format!("{agent} does not accept images");
            return Err(CommandError::usage(
                message,
                "name the file in the prompt instead of `--image`",
            ));
        }
        if !self.add_dir.is_empty()
            && capabilities["sessionCapabilities"]["additionalDirectories"].is_null()
        {
            let message = format!("{agent} does not accept extra directories");
            let hint = "leave out `--add-dir`, or choose a `--cwd` that contains them all";
            return Err(CommandError::usage(message, hint));
        }
        Ok(())
    }

    fn requested_settings(&self) -> impl Iterator<Item = RequestedSetting<'_>> {
        // The model comes first: the reasoning levels may depend on it.
        let all = [
            (SessionSetting::Model, "model", "--model", &self.model),
            (SessionSetting::Mode, "mode", "--mode", &self.mode),
            (SessionSetting::Reasoning, "reasoning level", "--reasoning", &self.reasoning),
        ];
        all.into_iter().filter_map(|(setting, name, flag, value)| {
            Some(RequestedSetting { setting, name, flag, value: value.as_deref()? })
        })
    }

    pub(super) fn has_images(&self) -> bool {
        !self.image.is_empty()
    }

    pub(super) fn has_directories(&self) -> bool {
        !self.add_dir.is_empty()
    }

    pub(super) fn has_requested_settings(&self) -> bool {
        self.requested_settings().next().is_some()
    }
}

impl RunCommand {
    /// Applies the requested settings before the first prompt.
    pub(super) fn apply_settings(
        &self,
        conn: &mut CommandConnection,
        target: &mut TargetSession,
        launch: &AgentLaunch,
    ) -> Result<(), CommandError> {
        for request in self.settings.requested_settings() {
            let RequestedSetting { setting, value, .. } = request;
            let change = options::plan_change(&target.setup, setting, &target.session, value)
                .map_err(|refused| request.unavailable_error(target, refused))?;
            let Some(change) = change else { continue };
            let waited_for = format!("{} to set its {}", target.agent, request.name);
            let wait = ResponseWait { waited_for: &waited_for, limit: launch.start_limit() };
            let answer = conn
                .call_method(change.method, &change.params, wait)
                .map_err(|error| request.rejected_error(target, error))?;
            if answer["configOptions"].is_array() {
                target.setup["configOptions"] = answer["configOptions"].clone();
            }
        }
        Ok(())
    }

    /// Loads the settings of an existing session if some are to be changed.
    pub(super) fn load_setup(
        &self,
        conn: &mut CommandConnection,
        target: &mut TargetSession,
    ) -> Result<(), CommandError> {
        if self.settings.has_requested_settings() {
            let params =
                json!({ "sessionId": target.session, "cwd": target.cwd, "mcpServers": [] });
            target.setup =
                conn.call_hub(Method::SessionResume, &params, "the settings of the session")?;
        }
        Ok(())
    }
}

/// A setting and its requested value.
#[derive(Clone, Copy)]
struct RequestedSetting<'a> {
    setting: SessionSetting,
    /// The name in messages.
    name: &'static str,
    flag: &'static str,
    value: &'a str,
}

impl RequestedSetting<'_> {
    /// The agent does not offer the setting or the value.
    fn unavailable_error(self, target: &TargetSession, refused: SettingError) -> CommandError {
        let RequestedSetting { name, flag, value, .. } = self;
        match refused {
            SettingError::InvalidModelId => {
                let message = format!("`{value}` is not a valid model id");
                CommandError::usage(
                    message,
                    "`jackfield models AGENT` lists the models of an agent",
                )
            }
            SettingError::NotConfigurable => {
                let message = format!("{} does not let clients set the {name}", target.agent);
                CommandError::SettingRejected {
                    message,
                    causes: Vec::new(),
                    flag,
                    available: Vec::new(),
                }
            }
            SettingError::NotOffered { offered } => {
                let message = format!("{} has no {name} `{value}`", target.agent);
                CommandError::SettingRejected {
                    message,
                    causes: Vec::new(),
                    flag,
                    available: offered,
                }
            }
        }
    }

    /// The agent rejected the value. Other errors are returned unchanged.
    fn rejected_error(self, target: &TargetSession, error: CommandError) -> CommandError {
        let RequestedSetting { setting, name, flag, value } = self;
        match error {
            CommandError::Response(response) if response.error_name().is_empty() => {
                let message = format!("{} rejected the {name} `{value}`", target.agent);
                let offer = options::find_offer(&target.setup, setting);
                let available = offer.map(|it| it.values()).unwrap_or_default();
                CommandError::SettingRejected {
                    message,
                    causes: list_as_causes(&response),
                    flag,
                    available,
                }
            }
            other => other,
        }
    }
}
