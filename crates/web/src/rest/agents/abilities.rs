//! The modes and capabilities of an agent: from the catalog, and from the sessions that the API has opened.

use super::agent::{AgentSettingChoice, PLAIN};
use jackfield_catalog::LaunchVariant;
use jackfield_views::options::{SessionSetting, find_offer};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What an agent can do. A member is absent while it is unknown; the first session of the agent tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Capabilities)]
pub(crate) struct AgentCapabilities {
    /// Its output is sent while it works. An agent that prints plain text may print all of it at the end.
    streaming: bool,
    /// A running turn can be canceled.
    cancel: bool,
    /// A session can be continued after its agent has ended.
    resume: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<PermissionBehavior>,
    /// It accepts images in prompts; others get the paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) images: Option<bool>,
    /// It accepts `additionalDirectories`.
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_directories: Option<bool>,
}

/// When an agent requests permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PermissionMode)]
enum PermissionBehavior {
    /// In its default mode.
    Strict,
    /// Only in other modes than its default mode.
    Permissive,
    /// Never.
    None,
}

impl AgentCapabilities {
    /// What is known without a session. `variant` is how the agent is started.
    pub(super) fn from_variant(variant: Option<&LaunchVariant>) -> AgentCapabilities {
        let is_plain = variant.is_some_and(|it| it.dialect.as_deref() == Some(PLAIN));
        AgentCapabilities {
            streaming: !is_plain,
            cancel: true,
            resume: true,
            permission_mode: variant.map(permission_behavior),
            ..AgentCapabilities::default()
        }
    }
}

fn permission_behavior(variant: &LaunchVariant) -> PermissionBehavior {
    if variant.never_asks || !variant.can_ask() {
        PermissionBehavior::None
    } else if variant.modes.first().is_some_and(|it| !it.asks) {
        PermissionBehavior::Permissive
    } else {
        PermissionBehavior::Strict
    }
}

/// The modes that the catalog lists.
pub(super) fn listed_modes(variant: Option<&LaunchVariant>) -> Vec<AgentSettingChoice> {
    let modes = variant.map_or(&[][..], |it| &it.modes);
    modes.iter().map(|it| AgentSettingChoice::new(&it.id, it.name.as_str())).collect()
}

/// What the sessions of an agent have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LearnedAbilities {
    pub(crate) images: bool,
    pub(crate) additional_directories: bool,
    pub(super) modes: Vec<AgentSettingChoice>,
}

impl LearnedAbilities {
    /// Reads the response to `initialize`.
    pub(crate) fn from_initialize(initialized: &Value) -> LearnedAbilities {
        let capability =
            |path: &str| initialized.pointer(&format!("/agentCapabilities/{path}")).cloned();
        let dirs = capability("sessionCapabilities/additionalDirectories");
        LearnedAbilities {
            images: capability("promptCapabilities/image") == Some(Value::Bool(true)),
            additional_directories: dirs.is_some_and(|it| !it.is_null()),
            modes: Vec::new(),
        }
    }

    /// Adds the modes in the response to `session/new`.
    pub(crate) fn add_setup(&mut self, setup: &Value) {
        let offer = find_offer(setup, SessionSetting::Mode);
        let choices = offer.into_iter().flat_map(|it| it.choices);
        self.modes = choices.map(|it| AgentSettingChoice::new(&it.value, it.name)).collect();
    }

    /// Adds what was learned to what is known from the catalog.
    pub(super) fn add_to(
        &self,
        capabilities: &mut AgentCapabilities,
        modes: &mut Vec<AgentSettingChoice>,
    ) {
        capabilities.images = Some(self.images);
        capabilities.additional_directories = Some(self.additional_directories);
        if !self.modes.is_empty() {
            modes.clone_from(&self.modes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_catalog::Catalog;
    use serde_json::json;

    #[test]
    fn catalog_and_sessions_give_modes_and_capabilities() {
        let catalog = Catalog::builtin();
        let claude = catalog.get("claude").unwrap();
        let variant = claude.launch.iter().find(|it| !it.modes.is_empty());
        let mut modes = listed_modes(variant);
        let mut capabilities = AgentCapabilities::from_variant(variant);
        assert!(modes.iter().any(|it| it.id == "plan"), "{modes:?}");
        assert_eq!(capabilities.permission_mode, Some(PermissionBehavior::Strict));
        assert_eq!(capabilities.images, None);
        let initialized = json!({ "agentCapabilities": {
            "promptCapabilities": { "image": true },
            "sessionCapabilities": { "additionalDirectories": {} },
        } });
        let mut learned = LearnedAbilities::from_initialize(&initialized);
        learned.add_setup(&json!({ "modes": {
            "currentModeId": "ask", "availableModes": [{ "id": "ask", "name": "Ask" }],
        } }));
        learned.add_to(&mut capabilities, &mut modes);
        assert_eq!(modes, [AgentSettingChoice::new("ask", "Ask")]);
        let shown = serde_json::to_value(capabilities).unwrap();
        assert_eq!(
            (&shown["images"], &shown["additionalDirectories"]),
            (&json!(true), &json!(true))
        );
    }
}
