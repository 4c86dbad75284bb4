//! All rules that can apply to a call: the user's, those of trusted projects and those of a
//! session.

use crate::{Policy, PolicyDecision, Rule, RuleEffect, RuleScope, ToolCallFacts, evaluate_rules};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The rules outside of sessions, and the agent modes in which rules cannot be enforced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySet {
    pub user: Policy,
    /// Policies of trusted projects by project folder.
    pub projects: BTreeMap<PathBuf, Policy>,
    /// Session folders that are reached through symbolic links, with their real paths.
    pub real_folders: BTreeMap<PathBuf, PathBuf>,
    /// The home directory that `~` stands for in a rule.
    pub home: Option<String>,
    /// For each agent, the modes in which it acts without asking, so that no rule is applied.
    pub unenforced_modes: BTreeMap<String, Vec<String>>,
    /// The names of the sandbox profiles that sessions can choose.
    pub sandbox_profiles: Vec<String>,
}

impl PolicySet {
    /// Decides a call by the rules of its folder, with the rules learned in its session first.
    pub fn evaluate_call(&self, learned: Vec<Rule>, call: &ToolCallFacts) -> PolicyDecision {
        let session = Policy::from_learned_rules(learned);
        let mut all = vec![(RuleScope::Session, &session)];
        all.extend(self.project_policy(&call.cwd).map(|it| (RuleScope::Project, it)));
        all.push((RuleScope::User, &self.user));
        evaluate_rules(&all, call)
    }

    /// Whether a conversation that its agent has lost may be reseeded from a summary. The project's
    /// setting wins over the user's; the default is yes.
    pub fn can_reseed(&self, cwd: &str) -> bool {
        let project = self.project_policy(cwd).and_then(|it| it.reseed);
        project.or(self.user.reseed).unwrap_or(true)
    }

    /// The sandbox profile that the project of a folder chooses.
    pub fn project_sandbox(&self, cwd: &str) -> Option<&str> {
        self.project_policy(cwd)?.sandbox.as_deref()
    }

    /// Whether no rule exists outside of sessions.
    pub fn is_empty(&self) -> bool {
        self.user.rules.is_empty() && self.projects.values().all(|it| it.rules.is_empty())
    }

    /// Whether a deny rule outside of sessions applies to this folder.
    pub fn has_deny_rules(&self, cwd: &str) -> bool {
        self.rules_of(cwd).any(|it| it.effect == RuleEffect::Deny)
    }

    /// Whether a rule outside of sessions can be enforced in this folder only if the agent asks.
    pub fn requires_asking(&self, cwd: &str) -> bool {
        self.rules_of(cwd).any(|it| it.effect != RuleEffect::Allow)
    }

    fn rules_of(&self, cwd: &str) -> impl Iterator<Item = &Rule> {
        let all = self.project_policy(cwd).into_iter().chain([&self.user]);
        all.flat_map(|it| &it.rules)
    }

    /// Why rules cannot be enforced in this mode of this agent; `None` if they can.
    pub fn describe_unenforced_mode(&self, agent: &str, mode: &str) -> Option<String> {
        let modes = self.unenforced_modes.get(agent)?;
        let is_unenforced = modes.iter().any(|it| it == mode);
        is_unenforced.then(|| format!("{agent} runs with {mode}: policy is not enforced"))
    }

    /// The policy of the nearest trusted project that contains a folder.
    fn project_policy(&self, cwd: &str) -> Option<&Policy> {
        let cwd = Path::new(cwd);
        let real = self.real_folders.get(cwd).map_or(cwd, PathBuf::as_path);
        real.ancestors().find_map(|it| self.projects.get(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_policy;
    use serde_json::json;

    fn policies() -> PolicySet {
        let user =
            parse_policy("[[rule]]\ndo = \"ask\"\nrun = \"git push\"\n", "policy.toml").unwrap();
        let near = "reseed = false\n[[rule]]\ndo = \"allow\"\nrun = \"git\"\n";
        let near = parse_policy(near, ".jackfield.toml").unwrap();
        let far = parse_policy("[[rule]]\ndo = \"deny\"\n", ".jackfield.toml").unwrap();
        let projects = [("/p/sub".into(), near), ("/q".into(), far)];
        let unenforced_modes = [("claude".to_owned(), vec!["bypassPermissions".to_owned()])];
        let real_folders = [("/link/deep".into(), "/q/deep".into())].into();
        let (projects, unenforced_modes) = (projects.into(), unenforced_modes.into());
        PolicySet { user, projects, real_folders, unenforced_modes, ..PolicySet::default() }
    }

    fn effect(policies: &PolicySet, cwd: &str, command: &str) -> Option<RuleEffect> {
        let call = json!({ "kind": "execute", "rawInput": { "command": command } });
        let params = json!({ "toolCall": call });
        policies
            .evaluate_call(
                Vec::new(),
                &ToolCallFacts::from_request("claude", cwd, None, &params, None),
            )
            .effect
    }

    #[test]
    fn nearest_project_that_contains_a_folder_decides() {
        let all = policies();
        assert_eq!(effect(&all, "/p/sub/deep", "git push"), Some(RuleEffect::Allow));
        assert_eq!(effect(&all, "/p", "git push"), Some(RuleEffect::Ask));
        assert_eq!(effect(&all, "/pq", "ls"), None);
        assert_eq!(effect(&all, "/q", "ls"), Some(RuleEffect::Deny));
        assert_eq!(effect(&all, "/link/deep", "ls"), Some(RuleEffect::Deny));
        assert!(all.has_deny_rules("/q/deep") && !all.has_deny_rules("/p/sub"));
    }

    #[test]
    fn lost_conversation_is_reseeded_unless_a_file_forbids_it() {
        let all = policies();
        assert!(all.can_reseed("/p") && !all.can_reseed("/p/sub"));
    }

    #[test]
    fn mode_without_permission_requests_is_reported() {
        let why = policies().describe_unenforced_mode("claude", "bypassPermissions").unwrap();
        assert_eq!(why, "claude runs with bypassPermissions: policy is not enforced");
        assert_eq!(policies().describe_unenforced_mode("claude", "default"), None);
    }
}
