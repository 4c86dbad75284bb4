//! Workflows of the hosted CI: pinned actions, time limits, read-only permissions, no values pasted into scripts.
//!
//! Lines are read, not YAML: the files are ours, and their form is fixed. `cargo xtask workflows` checks them with a
//! real parser.

/// Where the hosted CI looks for workflows.
pub(super) const FOLDER: &str = ".github/workflows/";

/// The only permission of a workflow; a job that needs another one asks for it.
const PERMISSIONS: [&str; 2] = ["permissions:", "  contents: read"];

/// Complaints about one workflow.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut complaints = check_jobs(path, &lines);
    let is_read_only = lines.windows(3).any(|it| it[..2] == PERMISSIONS && indent(it[2]) == 0);
    if !is_read_only {
        complaints
            .push(format!("{path}: say `permissions:` with only `contents: read` at the top"));
    }
    for (number, action) in actions(&lines) {
        if !is_pinned(action) {
            complaints.push(format!(
                "{path}:{number}: pin `{action}` by a commit of 40 digits, with `# vX.Y.Z` behind it"
            ));
        }
    }
    for number in script_expressions(&lines) {
        complaints.push(format!(
            "{path}:{number}: a script has `${{{{ }}}}`: pass the value as an environment variable"
        ));
    }
    complaints
}

/// Complaints about jobs without a time limit.
fn check_jobs(path: &str, lines: &[&str]) -> Vec<String> {
    let start = lines.iter().position(|it| *it == "jobs:").map_or(lines.len(), |it| it + 1);
    let mut complaints = Vec::new();
    let mut jobs: Vec<(&str, bool)> = Vec::new();
    for line in &lines[start..] {
        match (indent(line), jobs.last_mut()) {
            (2, _) if line.ends_with(':') => jobs.push((line.trim().trim_end_matches(':'), false)),
            (4, Some(job)) if line.trim().starts_with("timeout-minutes: ") => job.1 = true,
            _ => {}
        }
    }
    if jobs.is_empty() {
        complaints.push(format!("{path}: has no jobs"));
    }
    let unlimited = jobs.iter().filter(|(_, is_limited)| !is_limited);
    complaints
        .extend(unlimited.map(|(name, _)| format!("{path}: `{name}`: say `timeout-minutes`")));
    complaints
}

/// The values of `uses:` with their line numbers.
fn actions<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    let keys = (1..).zip(lines).map(|(number, it)| (number, it.trim_start()));
    keys.filter_map(|(number, it)| {
        let it = it.strip_prefix("- ").unwrap_or(it);
        Some((number, it.strip_prefix("uses: ")?.trim()))
    })
}

/// `owner/name@COMMIT # vX.Y.Z`, or an action in this repository.
fn is_pinned(action: &str) -> bool {
    let pinned = action.split_once('@').and_then(|(_, it)| it.split_once(" # v"));
    let is_commit = |it: &str| it.len() == 40 && it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_version = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
    action.starts_with("./") || pinned.is_some_and(|it| is_commit(it.0) && is_version(it.1))
}

/// The numbers of lines in scripts that contain an expression, which is pasted into the script before it runs.
fn script_expressions(lines: &[&str]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut script = None;
    for (number, line) in (1..).zip(lines) {
        let key = line.trim_start().trim_start_matches("- ");
        let is_blank = key.is_empty();
        if script.is_some_and(|start| !is_blank && indent(line) <= start) {
            script = None;
        }
        if script.is_none() && key.starts_with("run:") {
            script = Some(line.len() - key.len());
        }
        if script.is_some() && line.contains("${{") {
            found.push(number);
        }
    }
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKFLOW: &str = "\
name: ci
on: push
permissions:
  contents: read
jobs:
  linux:
    runs-on: ${{ matrix.runner }}
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v7.0.1
      - uses: ./.github/actions/prepare
      - run: |
          .ci/run

          echo done
      - name: a value
        env:
          REF: ${{ github.ref }}
        run: echo \"$REF\"
";

    fn complaints(from: &str, to: &str) -> Vec<String> {
        assert!(WORKFLOW.contains(from), "{from}");
        check("x.yml", &WORKFLOW.replace(from, to))
    }

    #[test]
    fn workflow_that_follows_all_rules_is_accepted() {
        assert_eq!(check("x.yml", WORKFLOW), [""; 0]);
    }

    #[test]
    fn action_by_tag_branch_or_without_version_is_refused() {
        let commit = "@0123456789012345678901234567890123456789 # v7.0.1";
        for other in ["@v7", "@main", "", "@0123456789012345678901234567890123456789", "@0123 # v7"]
        {
            let complaints = complaints(commit, other);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
            assert!(complaints[0].starts_with("x.yml:10: pin "), "{complaints:?}");
        }
    }

    #[test]
    fn job_without_time_limit_is_refused() {
        let complaints = complaints("    timeout-minutes: 60\n", "");
        assert_eq!(complaints, ["x.yml: `linux`: say `timeout-minutes`"]);
        let complaints = check("x.yml", "permissions:\n  contents: read\njobs:\n");
        assert_eq!(complaints, ["x.yml: has no jobs"]);
    }

    #[test]
    fn workflow_that_may_write_by_default_is_refused() {
        for other in ["  contents: write\n", "  contents: read\n  packages: write\n", ""] {
            let complaints = complaints("  contents: read\n", other);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
            assert!(complaints[0].contains("only `contents: read`"), "{complaints:?}");
        }
    }

    #[test]
    fn expression_in_a_script_is_refused() {
        let complaints = complaints("echo done", "echo ${{ github.event.issue.title }}");
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].starts_with("x.yml:15: a script has `${{ }}`"), "{complaints:?}");
        let complaints = self::complaints("echo \"$REF\"", "echo ${{ github.head_ref }}");
        assert!(complaints[0].starts_with("x.yml:19: "), "{complaints:?}");
    }
}
