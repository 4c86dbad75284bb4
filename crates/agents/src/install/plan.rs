//! What an installation will do, before it does it.

use super::{
    InstallCommand, InstallError, archive::ArchiveTools, command::PackageTools, npm::NpmTools,
    pypi::PythonTools,
};
use crate::{
    find::ProgramLocations,
    installed::{InstalledAgents, PackageRecord, is_version_name},
};
use jackfield_catalog::{AgentPackage, AgentSpec, InstallAdvice};
use std::path::PathBuf;

/// What an installation will do: packages with exact versions and checksums, the folder, and all command lines.
#[derive(Debug, Clone)]
pub struct InstallPlan {
    pub(super) spec: AgentSpec,
    /// The folder of the new version.
    pub folder: PathBuf,
    /// The name of that folder.
    pub(super) target: String,
    pub packages: Vec<PackageRecord>,
    /// The packages whose install scripts are run.
    pub with_scripts: Vec<String>,
    /// The programs that will be found there.
    pub bins: Vec<String>,
    /// Empty if this version is already in its folder.
    pub commands: Vec<InstallCommand>,
    pub state: PlanState,
}

/// What is there before the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanState {
    /// Jackfield has not installed the agent.
    New,
    /// This version is in use: nothing will be done.
    Current,
    /// Another version is in use; this is the version of its first package.
    Replaces(String),
}

impl InstallPlan {
    /// Asks the registry for the version, or for the newest one. Nothing is changed.
    pub async fn resolve(
        spec: &AgentSpec,
        version: Option<&str>,
        installed: &InstalledAgents,
        locations: &ProgramLocations,
    ) -> Result<InstallPlan, InstallError> {
        if let Some(version) = version.filter(|it| !is_version_name(it)) {
            return Err(InstallError::InvalidVersion { version: version.to_owned() });
        }
        check_offered(spec)?;
        let tools = PackageTools::new(locations);
        let with_scripts: Vec<String> =
            spec.packages.iter().filter(|it| it.scripts).map(|it| it.name().to_owned()).collect();
        let mut packages = Vec::new();
        let resolved = match &spec.packages[..] {
            [package] if package.pypi.is_some() => {
                let python = PythonTools::find(&tools, spec, package).await?;
                packages.push(python.resolve(&tools, package, version).await?);
                ResolvedTools::Python(python)
            }
            [package] if !package.archives.is_empty() => {
                let archive = ArchiveTools::find(&tools, spec, package)?;
                packages.push(archive.resolve(spec, version)?);
                ResolvedTools::Archive(archive)
            }
            all => {
                let npm = NpmTools::find(&tools, spec).await?;
                for (index, package) in all.iter().enumerate() {
                    // The version is that of the first package; adapters have versions of their own.
                    let version = version.filter(|_| index == 0).unwrap_or("latest");
                    packages.push(npm.resolve(&tools, package, version).await?);
                }
                ResolvedTools::Npm(npm)
            }
        };
        let versions: Vec<&str> = packages.iter().map(|it| it.version.as_str()).collect();
        let target = versions.join("+");
        let folder = installed.agent_dir(&spec.id).join(&target);
        let commands = match resolved {
            _ if installed.find_version(&spec.id, &target).is_some() => Vec::new(),
            ResolvedTools::Npm(npm) => npm.commands(&folder, &packages, &with_scripts),
            ResolvedTools::Python(python) => python.commands(&folder, &packages[0]),
            ResolvedTools::Archive(archive) => archive.commands(&folder),
        };
        let state = match installed.find_current(&spec.id) {
            None => PlanState::New,
            Some(current) if current.name == target => PlanState::Current,
            Some(current) => {
                let record = current.read_record();
                PlanState::Replaces(record.map_or(current.name, |it| it.version().to_owned()))
            }
        };
        let bins = spec.packages.iter().flat_map(|it: &AgentPackage| it.bins.clone()).collect();
        let spec = spec.clone();
        Ok(InstallPlan { spec, folder, target, packages, with_scripts, bins, commands, state })
    }

    pub fn agent(&self) -> &str {
        &self.spec.id
    }

    /// The version of the agent, which is that of its first package.
    pub fn version(&self) -> &str {
        &self.packages[0].version
    }
}

enum ResolvedTools {
    Npm(NpmTools),
    Python(PythonTools),
    Archive(ArchiveTools),
}

/// Fails for an agent without packages.
fn check_offered(spec: &AgentSpec) -> Result<(), InstallError> {
    let (reason, hint) = match spec.install_advice() {
        InstallAdvice::Command(_) => return Ok(()),
        InstallAdvice::Included => ("it is a part of Jackfield".to_owned(), String::new()),
        InstallAdvice::Vendor { reason, page } => {
            let page = page.map_or_else(String::new, |it| format!(", as {it} describes"));
            let hint = format!(
                "install it yourself{page}; `jackfield agents` finds it on PATH and in the usual folders"
            );
            (reason, hint)
        }
    };
    Err(InstallError::NotOffered { agent: spec.id.clone(), reason, hint })
}
