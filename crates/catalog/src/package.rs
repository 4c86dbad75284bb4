//! The packages of an agent: what `jackfield agents install` puts into a folder of its own, and what a user would type
//! to install the same for the whole machine.

use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    env::consts::{ARCH, OS},
};

/// `[[package]]`: a package of npm or `PyPI`, or archives. Exactly one of `npm`, `pypi` and `archive` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentPackage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
    /// The name on `PyPI`, with the extras that the agent needs: `name[extra]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pypi: Option<String>,
    /// The version of the archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The programs of the package that are used.
    pub bins: Vec<String>,
    /// Whether the package of npm does not work without its install scripts. They are not run otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scripts: bool,
    /// The oldest version of Python that the package supports: `3.12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Archives by platform, as ACP registries name them: `linux-x86_64`.
    #[serde(rename = "archive", skip_serializing_if = "BTreeMap::is_empty")]
    pub archives: BTreeMap<String, PackageArchive>,
}

/// `[package.archive.PLATFORM]`: an archive, and the checksum that it must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageArchive {
    pub url: String,
    /// In hexadecimal digits.
    pub sha256: String,
    /// The path of the program in the archive.
    pub program: String,
}

impl AgentPackage {
    /// The name in its registry.
    pub fn name(&self) -> &str {
        self.npm.as_deref().or(self.pypi.as_deref()).unwrap_or_default()
    }

    /// The archive for the platform of this machine.
    pub fn find_archive(&self) -> Option<&PackageArchive> {
        self.archives.get(&current_platform())
    }
}

/// The platform of this machine, as ACP registries name it.
pub fn current_platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    format!("{system}-{ARCH}")
}

/// The command that installs the packages for the whole machine; `None` without packages, and for archives.
pub(crate) fn global_install_command(packages: &[AgentPackage]) -> Option<String> {
    let first = packages.first().filter(|it| it.archives.is_empty())?;
    let quoted = packages.iter().map(|it| match it.name() {
        name if name.contains('[') => format!("'{name}'"),
        name => name.to_owned(),
    });
    let names = quoted.collect::<Vec<_>>().join(" ");
    let program = if first.npm.is_some() { "npm install -g" } else { "uv tool install" };
    Some(format!("{program} {names}"))
}
