//! The packages of an agent: what `jackfield agents install` puts into a folder of its own, and what a user would type
//! to install the same for the whole machine.

use serde::{Deserialize, Serialize};

/// `[[package]]`: a package of npm or `PyPI`. Exactly one of `npm` and `pypi` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentPackage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
    /// The name on `PyPI`, with the extras that the agent needs: `name[extra]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pypi: Option<String>,
    /// The programs of the package that are used.
    pub bins: Vec<String>,
    /// Whether the package of npm does not work without its install scripts. They are not run otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scripts: bool,
    /// The oldest version of Python that the package supports: `3.12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
}

impl AgentPackage {
    /// The name in its registry.
    pub fn name(&self) -> &str {
        self.npm.as_deref().or(self.pypi.as_deref()).unwrap_or_default()
    }
}

/// The command that installs the packages for the whole machine; `None` without packages.
pub(crate) fn global_install_command(packages: &[AgentPackage]) -> Option<String> {
    let quoted = packages.iter().map(|it| match it.name() {
        name if name.contains('[') => format!("'{name}'"),
        name => name.to_owned(),
    });
    let names = quoted.collect::<Vec<_>>().join(" ");
    let program =
        if packages.first()?.npm.is_some() { "npm install -g" } else { "uv tool install" };
    Some(format!("{program} {names}"))
}
