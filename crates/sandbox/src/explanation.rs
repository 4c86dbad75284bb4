//! Explains a plan: what a process gets when it uses a path, and which refusals its error messages show.

use crate::plan::{EnforcementLayer, PathAccess, SandboxPlan};
use std::path::{Path, PathBuf};

/// What a sandboxed process may do with one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathExplanation {
    pub path: PathBuf,
    pub access: PathAccess,
    /// The path of the rule that applies.
    pub rule: PathBuf,
    /// The system's message for a process that reads the path, if it may not.
    pub read_error: Option<&'static str>,
    /// The system's message for a process that changes the path, if it may not.
    pub write_error: Option<&'static str>,
}

impl PathExplanation {
    /// `path` is absolute and has no symbolic links.
    pub fn of(plan: &SandboxPlan, path: &Path) -> Option<PathExplanation> {
        let rule = plan.find_rule(path)?;
        let is_hidden = rule.access == PathAccess::Hidden;
        let is_writable = matches!(rule.access, PathAccess::Writable | PathAccess::Temporary);
        Some(PathExplanation {
            path: path.to_owned(),
            access: rule.access,
            rule: rule.path.clone(),
            read_error: is_hidden.then(|| hidden_error(plan.layer)),
            write_error: (!is_writable).then(|| match rule.access {
                PathAccess::Hidden => hidden_error(plan.layer),
                _ => read_only_error(plan.layer),
            }),
        })
    }
}

fn hidden_error(layer: EnforcementLayer) -> &'static str {
    match layer {
        EnforcementLayer::Bubblewrap => "No such file or directory",
        EnforcementLayer::Landlock => "Permission denied",
        EnforcementLayer::Seatbelt => "Operation not permitted",
    }
}

fn read_only_error(layer: EnforcementLayer) -> &'static str {
    match layer {
        EnforcementLayer::Bubblewrap => "Read-only file system",
        EnforcementLayer::Landlock => "Permission denied",
        EnforcementLayer::Seatbelt => "Operation not permitted",
    }
}

/// A line of a tool's output that shows a refusal of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalLine {
    pub line: String,
    /// The path in the line that the sandbox refused.
    pub path: PathBuf,
}

/// Finds the lines of a tool's output with an error message that the sandbox causes for a path in the line.
/// `home` replaces `~`; relative paths are below `cwd`.
pub fn find_refusals(
    plan: &SandboxPlan,
    output: &str,
    home: &Path,
    cwd: &Path,
) -> Vec<RefusalLine> {
    let errors = [hidden_error(plan.layer), read_only_error(plan.layer)];
    let lines = output.lines().filter(|line| errors.iter().any(|it| line.contains(it)));
    let explain = |line: &str| {
        let parts = line.split(|it: char| it.is_whitespace() || "'\"`,;()".contains(it));
        let mut paths = parts.filter_map(|it| absolute_path(it, home, cwd));
        let path = paths.find(|path| {
            let explained = PathExplanation::of(plan, path);
            explained.is_some_and(|it| {
                let of_path = [it.read_error, it.write_error];
                of_path.into_iter().flatten().any(|error| line.contains(error))
            })
        })?;
        Some(RefusalLine { line: line.trim().to_owned(), path })
    };
    lines.filter_map(explain).collect()
}

/// The path that a word of a message names, without a colon at its end.
fn absolute_path(word: &str, home: &Path, cwd: &Path) -> Option<PathBuf> {
    let word = word.trim_end_matches([':', '.']);
    if let Some(rest) = word.strip_prefix("~/") {
        return Some(home.join(rest));
    }
    let is_path = word.contains('/') && !word.contains("://");
    let parts = Path::new(word).components();
    let has_parents = parts.into_iter().any(|it| it == std::path::Component::ParentDir);
    (is_path && !has_parents).then(|| cwd.join(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{NetworkPlan, PathRule, ResourceLimits};

    fn plan(layer: EnforcementLayer) -> SandboxPlan {
        let rule = |path: &str, access: PathAccess| PathRule { path: PathBuf::from(path), access };
        SandboxPlan {
            profile: "workspace".to_owned(),
            layer,
            paths: vec![
                rule("/", PathAccess::ReadOnly),
                rule("/home/u", PathAccess::Hidden),
                rule("/home/u/project", PathAccess::Writable),
                rule("/home/u/project/.git/hooks", PathAccess::ReadOnly),
                rule("/tmp", PathAccess::Temporary),
            ],
            links: Vec::new(),
            env: Vec::new(),
            network: NetworkPlan::None,
            proxies_loopback: false,
            limits: ResourceLimits::default(),
            unprotected: Vec::new(),
        }
    }

    #[test]
    fn path_has_the_errors_of_its_rule_and_its_layer() {
        let plans = [EnforcementLayer::Bubblewrap, EnforcementLayer::Landlock].map(plan);
        let errors = |path: &str| {
            plans.each_ref().map(|plan| {
                let it = PathExplanation::of(plan, Path::new(path)).unwrap();
                (it.read_error, it.write_error)
            })
        };
        let missing = Some("No such file or directory");
        let denied = Some("Permission denied");
        assert_eq!(errors("/home/u/.ssh/id"), [(missing, missing), (denied, denied)]);
        let read_only = [(None, Some("Read-only file system")), (None, denied)];
        assert_eq!(errors("/etc/hosts"), read_only);
        assert_eq!(errors("/home/u/project/.git/hooks/pre-commit"), read_only);
        assert_eq!(errors("/home/u/project/src"), [(None, None); 2]);
        assert_eq!(errors("/tmp/x"), [(None, None); 2]);
    }

    #[test]
    fn output_is_searched_for_errors_that_the_sandbox_causes() {
        let output = "touch: cannot touch '/etc/x': Read-only file system\n\
            cat: /home/u/.ssh/id: No such file or directory\n\
            cat: /home/u/project/missing: No such file or directory\n\
            error: ~/.netrc: No such file or directory\n\
            sh: .git/hooks/pre-commit: Read-only file system\n\
            see https://example.com/: No such file or directory\n\
            /etc/passwd: ok\n";
        let found = find_refusals(
            &plan(EnforcementLayer::Bubblewrap),
            output,
            Path::new("/home/u"),
            Path::new("/home/u/project"),
        );
        let paths: Vec<&Path> = found.iter().map(|it| it.path.as_path()).collect();
        let expected = [
            "/etc/x",
            "/home/u/.ssh/id",
            "/home/u/.netrc",
            "/home/u/project/.git/hooks/pre-commit",
        ];
        assert_eq!(paths, expected.map(Path::new));
        assert_eq!(found[0].line, "touch: cannot touch '/etc/x': Read-only file system");
    }
}
