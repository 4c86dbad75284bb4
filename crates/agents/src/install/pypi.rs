//! Packages of `PyPI`: their versions and checksums, and the commands that install them into a virtual environment.

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

/// The programs that are tried, the user's default first.
const PYTHONS: &[&str] = &["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
/// The oldest Python whose pip can report what it would install.
const OLDEST_PYTHON: &str = "3.9";
const PYTHON_HINT: &str = "install Python with pip and venv: https://www.python.org, with uv or pyenv, or your system's \
                           packages (`python3-pip` and `python3-venv` on Debian)";
/// Prints the version, and the modules that an installation needs and that exist.
const INSPECTION: &str = "import sys, importlib.util as u
print('.'.join(map(str, sys.version_info[:3])))
print(*[it for it in ('venv', 'ensurepip', 'pip') if u.find_spec(it)])";
/// What pip reports about the installation.
const REPORT_FILE: &str = "pip-report.json";
/// All packages with their exact versions.
const REQUIREMENTS_FILE: &str = "requirements.txt";

/// The Python that creates the virtual environment.
pub(super) struct PythonTools {
    python: PathBuf,
}

impl PythonTools {
    /// The first Python that the package supports and that has pip and venv.
    pub(super) async fn find(
        tools: &PackageTools<'_>,
        spec: &AgentSpec,
        package: &AgentPackage,
    ) -> Result<PythonTools, InstallError> {
        let required = package.python.as_deref().unwrap_or(OLDEST_PYTHON);
        let mut failure = InstallError::MissingTool {
            tool: "python3".to_owned(),
            agent: spec.name.clone(),
            hint: PYTHON_HINT.to_owned(),
        };
        for name in PYTHONS {
            let Ok(found) = tools.find(name) else { continue };
            let inspect = InstallCommand::new(&found.path, &["-I", "-c", INSPECTION]);
            // A shim of a version manager fails if that version is not installed.
            let Ok(output) = tools.run(&inspect, Path::new("/"), QUERY_MAX).await else { continue };
            let mut lines = output.lines();
            let version = lines.next().unwrap_or_default().to_owned();
            let modules: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
            if parse_version(&version) < parse_version(required) {
                failure = InstallError::OldTool {
                    tool: "Python",
                    actual: version,
                    package: package.name().to_owned(),
                    required: format!("{required} or newer"),
                    hint: PYTHON_HINT.to_owned(),
                };
                continue;
            }
            if let Some(module) =
                ["venv", "ensurepip", "pip"].iter().find(|it| !modules.contains(it))
            {
                failure = InstallError::MissingTool {
                    tool: format!("{name} -m {module}"),
                    agent: spec.name.clone(),
                    hint: PYTHON_HINT.to_owned(),
                };
                continue;
            }
            return Ok(PythonTools { python: found.path });
        }
        Err(failure)
    }

    /// The exact version and the checksum of a package.
    pub(super) async fn resolve(
        &self,
        tools: &PackageTools<'_>,
        package: &AgentPackage,
        version: Option<&str>,
    ) -> Result<PackageRecord, InstallError> {
        let requirement = match version {
            Some(version) => format!("{}=={version}", package.name()),
            None => package.name().to_owned(),
        };
        let options = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", "-"];
        let args = [&["-m", "pip", "install"], &options[..], PIP_OPTIONS, &[&requirement]].concat();
        let query = InstallCommand::new(&self.python, &args);
        let answer = tools.run(&query, Path::new("/"), QUERY_MAX).await?;
        let unusable = |reason: &str| InstallError::UnusableAnswer {
            package: requirement.clone(),
            reason: reason.to_owned(),
        };
        let answer: Value =
            serde_json::from_str(&answer).map_err(|_| unusable("pip printed no report"))?;
        let Some((version, integrity)) = read_report(&answer, package.name()) else {
            return Err(unusable("the version or the checksum is missing"));
        };
        if !is_version_name(&version) {
            return Err(unusable("its version is not a version"));
        }
        let (source, name) = (PackageSource::Pypi, package.name().to_owned());
        Ok(PackageRecord { source, name, version, integrity })
    }

    /// The commands that install a package into a folder.
    pub(super) fn commands(&self, folder: &Path, package: &PackageRecord) -> Vec<InstallCommand> {
        let venv = folder.join("venv");
        let report = folder.join(REPORT_FILE);
        let requirement = format!("{}=={}", package.name, package.version);
        let options = ["--quiet", "--no-user", "--report"];
        let report = report.to_string_lossy();
        let args =
            [&["-m", "pip", "install"], &options[..], &[&report], PIP_OPTIONS, &[&requirement]];
        vec![
            InstallCommand::new(&self.python, &["-m", "venv", &venv.to_string_lossy()]),
            InstallCommand::new(&venv.join("bin/python"), &args.concat()),
            freeze_command(folder),
        ]
    }
}

/// Nothing is built from source, because that runs code of the package; pip asks no questions.
const PIP_OPTIONS: &[&str] =
    &["--only-binary", ":all:", "--no-input", "--disable-pip-version-check"];

/// Lists the exact versions of all packages.
fn freeze_command(folder: &Path) -> InstallCommand {
    let args = ["-m", "pip", "freeze", "--disable-pip-version-check"];
    InstallCommand::new(&folder.join("venv/bin/python"), &args)
}

/// Checks that pip has installed the announced archive, and stores the list of all packages, which is the output of the
/// last command.
pub(super) fn check_installed(
    folder: &Path,
    package: &PackageRecord,
    frozen: &str,
) -> Result<(), InstallError> {
    let report = fs::read(folder.join(REPORT_FILE)).unwrap_or_default();
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let (version, integrity) = read_report(&report, &package.name).unwrap_or_default();
    let pairs = [(&package.version, version), (&package.integrity, integrity)];
    for (expected, actual) in pairs {
        if *expected != actual {
            let (package, expected) = (package.name.clone(), expected.clone());
            return Err(InstallError::NotAsAnnounced { package, expected, actual });
        }
    }
    let path = folder.join(REQUIREMENTS_FILE);
    let written = jackfield_private_files::write_file(&path, frozen.as_bytes());
    written.map_err(|source| crate::installed::StoreError::Folder { path, source }.into())
}

/// The version and the checksum of a package in a report of pip.
fn read_report(report: &Value, name: &str) -> Option<(String, String)> {
    let name = normalize_name(name.split('[').next().unwrap_or_default());
    let mut installed = report["install"].as_array()?.iter();
    let entry = installed
        .find(|it| it["metadata"]["name"].as_str().is_some_and(|it| normalize_name(it) == name))?;
    let hashes = &entry["download_info"]["archive_info"];
    let hash = hashes["hashes"]["sha256"].as_str().map(|it| format!("sha256={it}"));
    let hash = hash.or_else(|| hashes["hash"].as_str().map(str::to_owned))?;
    Some((entry["metadata"]["version"].as_str()?.to_owned(), hash))
}

/// `PyPI` ignores case, and takes `-`, `_` and `.` for the same.
fn normalize_name(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

fn parse_version(version: &str) -> Vec<u64> {
    version.split('.').map_while(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn report_is_read_by_the_normalized_name() {
        let report = json!({ "install": [
            { "metadata": { "name": "other", "version": "9" } },
            { "metadata": { "name": "Hermes_Agent", "version": "0.19.0" },
              "download_info": { "archive_info": { "hashes": { "sha256": "ab" } } } },
        ] });
        let expected = Some(("0.19.0".to_owned(), "sha256=ab".to_owned()));
        assert_eq!(read_report(&report, "hermes-agent[acp]"), expected);
        assert_eq!(read_report(&report, "other"), None, "it has no checksum");
        assert_eq!(read_report(&json!({}), "hermes-agent"), None);
    }

    #[test]
    fn versions_of_python_are_compared_by_number() {
        assert!(parse_version("3.9.18") < parse_version("3.12"));
        assert!(parse_version("3.12") <= parse_version("3.12.1"));
    }
}
