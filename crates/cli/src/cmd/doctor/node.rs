//! Checks Node.js, which many agents need: whether it is found, and whether it is new enough for the installed agents.

use super::{check_context::CheckContext, finding::DoctorFinding};
use jackfield_agents::{find::find_program, probe::AgentStatus};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, time::timeout};

const VERSION_MAX: Duration = Duration::from_secs(5);
/// The longest first line of a script that is read.
const FIRST_LINE_BYTES_MAX: u64 = 256;
/// A program of a package is at most this many folders below its `package.json`.
const PACKAGE_DEPTH_MAX: usize = 4;

pub(super) fn check_node(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let survey = context.survey();
    let statuses = survey.catalogue.iter().map(|it| (it, survey.status(it)));
    let needs: Vec<NodeNeed> =
        statuses.filter_map(|(spec, status)| find_need(&spec.id, &status)).collect();
    if needs.is_empty() {
        return Vec::new();
    }
    let node = find_program(&["node".to_owned()], None, &survey.locations).ok();
    let version = node.as_ref().and_then(|it| read_version(&it.path));
    let path = node.map(|it| it.path);
    vec![judge_node(&needs, path.as_deref(), version.as_deref())]
}

/// An agent that is a script for Node.js.
struct NodeNeed {
    agent: String,
    /// The oldest major version that its package allows, if it says so.
    minimum: Option<u32>,
}

fn find_need(agent: &str, status: &AgentStatus) -> Option<NodeNeed> {
    let program = &status.variants.get(status.chosen?)?.as_ref().ok()?.path;
    let mut start = Vec::new();
    File::open(program).ok()?.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut start).ok()?;
    if !is_node_script(&String::from_utf8_lossy(&start)) {
        return None;
    }
    let file = fs::canonicalize(program).unwrap_or_else(|_| program.clone());
    let range = read_node_range(&file).unwrap_or_default();
    Some(NodeNeed { agent: agent.to_owned(), minimum: find_minimum(&range) })
}

/// Whether a file starts with `#!/usr/bin/env node`. A script with the full path of Node.js has its own.
fn is_node_script(start: &str) -> bool {
    let Some(line) = start.strip_prefix("#!").and_then(|it| it.lines().next()) else {
        return false;
    };
    let mut arguments = line.split_whitespace();
    let is_env = arguments.next().is_some_and(|it| it.ends_with("/env"));
    is_env && arguments.any(|it| it == "node")
}

/// `engines.node` of the package with this file.
fn read_node_range(file: &Path) -> Option<String> {
    let folders = file.ancestors().skip(1).take(PACKAGE_DEPTH_MAX);
    let texts = folders.filter_map(|it| fs::read_to_string(it.join("package.json")).ok());
    let packages = texts.filter_map(|it| serde_json::from_str::<Value>(&it).ok());
    let mut ranges = packages.filter_map(|it| Some(it["engines"]["node"].as_str()?.to_owned()));
    ranges.next()
}

/// The smallest major version in a range such as `^20.19.0 || >=22.12.0`.
fn find_minimum(range: &str) -> Option<u32> {
    let alternatives = range.split("||").map(str::trim).filter(|it| !it.starts_with('<'));
    alternatives.filter_map(parse_major).min()
}

/// The first number of a version such as `v20.11.1`.
fn parse_major(version: &str) -> Option<u32> {
    let digits = version.trim_start_matches(|it: char| !it.is_ascii_digit());
    digits.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

/// The version that the program prints.
fn read_version(node: &PathBuf) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let output = runtime.block_on(async {
        let mut command = Command::new(node);
        command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        timeout(VERSION_MAX, command.output()).await
    });
    let text = String::from_utf8(output.ok()?.ok()?.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

fn judge_node(needs: &[NodeNeed], path: Option<&Path>, version: Option<&str>) -> DoctorFinding {
    let newest = needs.iter().filter_map(|it| it.minimum).max();
    let wanted = newest.map(|it| format!(" {it} or newer")).unwrap_or_default();
    let fix = format!("install Node.js{wanted}");
    let list_agents = |needs: &[&NodeNeed]| {
        needs.iter().map(|it| it.agent.as_str()).collect::<Vec<_>>().join(", ")
    };
    let all = list_agents(&needs.iter().collect::<Vec<_>>());
    let Some(path) = path.map(Path::display) else {
        return DoctorFinding::problem(format!("not found, but needed by {all}"), fix);
    };
    let Some(version) = version else {
        return DoctorFinding::problem(format!("`{path} --version` printed nothing"), fix);
    };
    let is_too_old = |it: &&NodeNeed| {
        it.minimum.is_some_and(|it| parse_major(version).is_some_and(|own| own < it))
    };
    let unserved: Vec<&NodeNeed> = needs.iter().filter(is_too_old).collect();
    if unserved.is_empty() {
        return DoctorFinding::ok(format!("{version} at {path}, for {all}"));
    }
    // The program may start nevertheless: the check of the agent says whether it does.
    let found = format!("{version} at {path} is too old for {}", list_agents(&unserved));
    DoctorFinding::warning(found, fix)
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn scripts_for_node_are_recognized() {
        assert!(is_node_script("#!/usr/bin/env node\nimport x"));
        assert!(is_node_script("#!/usr/bin/env -S node --no-warnings\n"));
        assert!(!is_node_script("#!/opt/node/bin/node\n"), "it has its own");
        assert!(!is_node_script("#!/bin/sh\nnode x\n"));
        assert!(!is_node_script("\u{7f}ELF"));
    }

    #[test]
    fn range_of_a_package_gives_the_oldest_major_version() {
        for (range, minimum) in [
            (">=18.0.0", Some(18)),
            ("^20.19.0 || >=22.12.0", Some(20)),
            (">= 20 <25", Some(20)),
            ("22.x", Some(22)),
            ("<25 || >=18", Some(18)),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(find_minimum(range), minimum, "{range}");
        }
    }

    #[test]
    fn missing_node_is_a_problem_and_an_old_one_a_warning() {
        let need = |agent: &str, minimum| NodeNeed { agent: agent.into(), minimum };
        let needs = [need("codex", None), need("gemini", Some(20))];
        let path = Some(Path::new("/usr/bin/node"));
        let good = judge_node(&needs, path, Some("v20.11.1"));
        assert_eq!(good.found, "v20.11.1 at /usr/bin/node, for codex, gemini");
        let old = judge_node(&needs, path, Some("v18.1.0"));
        assert_eq!(old.found, "v18.1.0 at /usr/bin/node is too old for gemini");
        assert_eq!(old.fix.as_deref(), Some("install Node.js 20 or newer"));
        assert_eq!(old.verdict, CheckVerdict::Warning);
        assert_eq!(judge_node(&needs, None, None).verdict, CheckVerdict::Problem);
        assert_eq!(judge_node(&needs, path, None).verdict, CheckVerdict::Problem);
    }
}
