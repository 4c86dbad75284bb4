//! Every rule that may speak, and where: the user's, those of trusted projects, a session's own.

use crate::{Call, Decision, Effect, Policy, Rule, Scope, decide};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The rules outside of any session, and what is known of agents that do not ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    pub user: Policy,
    /// Trusted projects, by their folder.
    pub projects: BTreeMap<PathBuf, Policy>,
    /// Folders of sessions that are reached through symbolic links, and where they are.
    pub real_folders: BTreeMap<PathBuf, PathBuf>,
    /// What `~` means in a rule.
    pub home: Option<String>,
    /// By agent, the modes in which it acts without asking: no rule is heard there.
    pub unasking: BTreeMap<String, Vec<String>>,
}

impl Policies {
    /// What the rules say to a call in its folder, those learned in its session first.
    pub fn decide(&self, learned: Vec<Rule>, call: &Call) -> Decision {
        let session = Policy::learned(learned);
        let mut all = vec![(Scope::Session, &session)];
        all.extend(self.project(&call.cwd).map(|it| (Scope::Project, it)));
        all.push((Scope::User, &self.user));
        decide(&all, call)
    }

    /// Whether a conversation that its agent lost may be begun anew with a digest: the project says,
    /// else the user, else it may.
    pub fn reseed(&self, cwd: &str) -> bool {
        let project = self.project(cwd).and_then(|it| it.reseed);
        project.or(self.user.reseed).unwrap_or(true)
    }

    /// Whether there is no rule at all outside of sessions.
    pub fn is_empty(&self) -> bool {
        self.user.rules.is_empty() && self.projects.values().all(|it| it.rules.is_empty())
    }

    /// Whether a rule outside of sessions denies anything in this folder.
    pub fn has_denies(&self, cwd: &str) -> bool {
        let all = self.project(cwd).into_iter().chain([&self.user]);
        all.flat_map(|it| &it.rules).any(|it| it.effect == Effect::Deny)
    }

    /// Why no rule is heard in this mode of this agent, if none is.
    pub fn unheard(&self, agent: &str, mode: &str) -> Option<String> {
        let modes = self.unasking.get(agent)?;
        let silent = modes.iter().any(|it| it == mode);
        silent.then(|| format!("{agent} runs with {mode}: policy is not enforced"))
    }

    /// The project a folder belongs to: the nearest one around it.
    fn project(&self, cwd: &str) -> Option<&Policy> {
        let cwd = Path::new(cwd);
        let real = self.real_folders.get(cwd).map_or(cwd, PathBuf::as_path);
        real.ancestors().find_map(|it| self.projects.get(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use serde_json::json;

    fn policies() -> Policies {
        let user = parse("[[rule]]\ndo = \"ask\"\nrun = \"git push\"\n", "policy.toml").unwrap();
        let near = "reseed = false\n[[rule]]\ndo = \"allow\"\nrun = \"git\"\n";
        let near = parse(near, ".jackfield.toml").unwrap();
        let far = parse("[[rule]]\ndo = \"deny\"\n", ".jackfield.toml").unwrap();
        let projects = [("/p/sub".into(), near), ("/q".into(), far)];
        let unasking = [("claude".to_owned(), vec!["bypassPermissions".to_owned()])];
        let real_folders = [("/link/deep".into(), "/q/deep".into())].into();
        let (projects, unasking) = (projects.into(), unasking.into());
        Policies { user, projects, real_folders, home: None, unasking }
    }

    fn effect(policies: &Policies, cwd: &str, command: &str) -> Option<Effect> {
        let call = json!({ "kind": "execute", "rawInput": { "command": command } });
        let params = json!({ "toolCall": call });
        policies.decide(Vec::new(), &Call::of("claude", cwd, None, &params, None)).effect
    }

    #[test]
    fn the_nearest_project_around_a_folder_speaks_for_it() {
        let all = policies();
        assert_eq!(effect(&all, "/p/sub/deep", "git push"), Some(Effect::Allow));
        assert_eq!(effect(&all, "/p", "git push"), Some(Effect::Ask));
        assert_eq!(effect(&all, "/pq", "ls"), None);
        assert_eq!(effect(&all, "/q", "ls"), Some(Effect::Deny));
        assert_eq!(effect(&all, "/link/deep", "ls"), Some(Effect::Deny));
        assert!(all.has_denies("/q/deep") && !all.has_denies("/p/sub"));
    }

    #[test]
    fn a_lost_conversation_is_begun_anew_unless_a_file_says_no() {
        let all = policies();
        assert!(all.reseed("/p") && !all.reseed("/p/sub"));
    }

    #[test]
    fn a_mode_that_asks_nothing_is_named() {
        let why = policies().unheard("claude", "bypassPermissions").unwrap();
        assert_eq!(why, "claude runs with bypassPermissions: policy is not enforced");
        assert_eq!(policies().unheard("claude", "default"), None);
    }
}
