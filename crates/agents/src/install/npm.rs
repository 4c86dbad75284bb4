//! Packages of npm: their versions and checksums, and the commands that install them.

use super::{
    InstallCommand, InstallError,
    command::{PackageTools, QUERY_MAX},
};
use crate::installed::{PackageRecord, PackageSource, is_version_name};
use jackfield_catalog::{AgentPackage, AgentSpec};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

const NODE_HINT: &str =
    "install Node.js with npm: https://nodejs.org, or with nvm, fnm or your system's packages";

/// npm, and the version of Node.js that it runs with.
pub(super) struct NpmTools {
    npm: PathBuf,
    node_version: String,
    /// The settings of all users, with the registry of a company. With `--prefix`, npm reads another file unless it is
    /// named.
    global_settings: String,
}

impl NpmTools {
    pub(super) async fn find(
        tools: &PackageTools<'_>,
        spec: &AgentSpec,
    ) -> Result<NpmTools, InstallError> {
        let missing = |tool: &str| InstallError::MissingTool {
            tool: tool.to_owned(),
            agent: spec.name.clone(),
            hint: NODE_HINT.to_owned(),
        };
        let npm = tools.find("npm").map_err(|_| missing("npm"))?.path;
        let node = tools.find("node").map_err(|_| missing("node"))?.path;
        let query = |program: &Path, args: &[&str]| InstallCommand::new(program, args);
        let version = query(&node, &["--version"]);
        let settings = query(&npm, &["config", "get", "globalconfig"]);
        let node_version = tools.run(&version, Path::new("/"), QUERY_MAX).await?;
        let global_settings = tools.run(&settings, Path::new("/"), QUERY_MAX).await?;
        let node_version = node_version.trim().trim_start_matches('v').to_owned();
        Ok(NpmTools { npm, node_version, global_settings: global_settings.trim().to_owned() })
    }

    /// The exact version and the checksum of a package. The working directory is not that of the user, whose project
    /// could name another registry.
    pub(super) async fn resolve(
        &self,
        tools: &PackageTools<'_>,
        package: &AgentPackage,
        version: &str,
    ) -> Result<PackageRecord, InstallError> {
        let named = format!("{}@{version}", package.name());
        let fields = ["version", "dist.integrity", "dist.shasum", "engines.node"];
        let args = [&["view", "--json", "--loglevel=error", &named][..], &fields[..]].concat();
        let query = InstallCommand::new(&self.npm, &args);
        let answer = tools.run(&query, Path::new("/"), QUERY_MAX).await?;
        let (record, required) = read_answer(package.name(), &named, &answer)?;
        match required {
            Some(required) if !is_supported(&required, &self.node_version) => {
                Err(InstallError::OldTool {
                    tool: "Node.js",
                    actual: self.node_version.clone(),
                    package: named,
                    required,
                    hint: format!("update Node.js, or name an earlier version; {NODE_HINT}"),
                })
            }
            _ => Ok(record),
        }
    }

    /// The commands that install these packages into a folder.
    pub(super) fn commands(
        &self,
        folder: &Path,
        packages: &[PackageRecord],
        with_scripts: &[String],
    ) -> Vec<InstallCommand> {
        let prefix = folder.to_string_lossy();
        let options = [
            "--global=false",
            "--ignore-scripts",
            "--no-fund",
            "--no-audit",
            "--no-update-notifier",
            "--save-exact",
            "--package-lock",
            "--bin-links",
            "--include=optional",
            "--loglevel=error",
        ];
        let names: Vec<String> =
            packages.iter().map(|it| format!("{}@{}", it.name, it.version)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = ["--prefix", &prefix, "--globalconfig", &self.global_settings];
        let args = [&["install"], &place[..], &options, &names].concat();
        let mut commands = vec![InstallCommand::new(&self.npm, &args)];
        if !with_scripts.is_empty() {
            let names: Vec<&str> = with_scripts.iter().map(String::as_str).collect();
            let options = ["--global=false", "--ignore-scripts=false", "--no-update-notifier"];
            let args = [&["rebuild"], &place[..], &options, &names].concat();
            commands.push(InstallCommand::new(&self.npm, &args));
        }
        commands
    }
}

/// The record of a package in the answer of `npm view`, and the version of Node.js that it needs.
fn read_answer(
    name: &str,
    named: &str,
    answer: &str,
) -> Result<(PackageRecord, Option<String>), InstallError> {
    let unusable = |reason: &str| InstallError::UnusableAnswer {
        package: named.to_owned(),
        reason: reason.to_owned(),
    };
    if answer.trim().is_empty() {
        return Err(unusable("it has no such version"));
    }
    let answer: Value = serde_json::from_str(answer).map_err(|_| unusable("it is not JSON"))?;
    // An incomplete version such as `1.2` is a range; the last match is the newest.
    let newest = answer.as_array().map_or(Some(&answer), |all| all.last());
    let field = |name: &str| newest?[name].as_str().map(str::to_owned);
    let version = field("version").ok_or_else(|| unusable("the version is missing"))?;
    if !is_version_name(&version) {
        return Err(unusable("its version is not a version"));
    }
    let shasum = || field("dist.shasum").map(|it| format!("sha1={it}"));
    let integrity = field("dist.integrity")
        .or_else(shasum)
        .ok_or_else(|| unusable("the checksum is missing"))?;
    let (source, name) = (PackageSource::Npm, name.to_owned());
    Ok((PackageRecord { source, name, version, integrity }, field("engines.node")))
}

/// Checks that npm has installed the announced versions and archives.
pub(super) fn check_installed(
    folder: &Path,
    packages: &[PackageRecord],
) -> Result<(), InstallError> {
    let lock = fs::read(folder.join("package-lock.json")).unwrap_or_default();
    let lock: Value = serde_json::from_slice(&lock).unwrap_or_default();
    for package in packages {
        let entry = &lock["packages"][format!("node_modules/{}", package.name)];
        let found = |name: &str| entry[name].as_str().unwrap_or("nothing").to_owned();
        let has_integrity =
            entry["integrity"].is_string() && !package.integrity.starts_with("sha1=");
        let pairs = [
            (package.version.clone(), found("version"), true),
            (package.integrity.clone(), found("integrity"), has_integrity),
        ];
        for (expected, actual, is_checked) in pairs {
            if is_checked && expected != actual {
                let package = package.name.clone();
                return Err(InstallError::NotAsAnnounced { package, expected, actual });
            }
        }
    }
    Ok(())
}

/// Whether a version of Node.js is in a range such as `>=20.10 || ^18.19`. Only lower limits are checked, because
/// newer versions usually work.
fn is_supported(range: &str, version: &str) -> bool {
    let version = parse_numbers(version);
    let is_in = |alternative: &str| {
        let mut parts = alternative.split_whitespace().filter(|it| !it.starts_with('<'));
        parts.all(|it| parse_numbers(it.trim_start_matches(['>', '=', '^', '~', 'v'])) <= version)
    };
    range.replace(">= ", ">=").split("||").any(is_in)
}

fn parse_numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_limits_of_node_are_checked() {
        for range in [">=20", ">= 20.1", "^18 || >=20", "*", "20.x", ">=18 <25", ""] {
            assert!(is_supported(range, "22.3.0"), "{range}");
        }
        for range in [">=24", "^23.1 || >=24.0.0", ">=22.3.1", "24.x"] {
            assert!(!is_supported(range, "22.3.0"), "{range}");
        }
    }

    #[test]
    fn answer_without_version_or_checksum_is_refused() {
        let read = |answer: &str| read_answer("a", "a@1", answer);
        let (record, node) =
            read(r#"{"version":"1.2.3","dist.integrity":"sha512-x","engines.node":">=20"}"#)
                .unwrap();
        assert_eq!((record.version.as_str(), record.integrity.as_str()), ("1.2.3", "sha512-x"));
        assert_eq!(node.as_deref(), Some(">=20"));
        let several =
            r#"[{"version":"1.1.0","dist.shasum":"0"},{"version":"1.2.0","dist.shasum":"1"}]"#;
        assert_eq!(read(several).unwrap().0.integrity, "sha1=1");
        for bad in ["", "null", "[]", "7", "oops", r#"{"version":"1"}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let hostile = r#"{"version":"../../x","dist.integrity":"sha512-x"}"#;
        assert!(matches!(read(hostile), Err(InstallError::UnusableAnswer { .. })));
    }
}
