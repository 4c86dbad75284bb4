//! The files of an installed agent: which version is used, and what a version consists of.

use super::is_version_name;
use serde::{Deserialize, Serialize};

/// The content of `current`: one file, so that both members change together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionSelection {
    /// The version in use.
    pub current: String,
    /// The version before it, which `agents rollback` selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

impl VersionSelection {
    /// Parses the file; `None` if it names anything but folders beside it.
    pub(super) fn parse(text: &[u8]) -> Option<VersionSelection> {
        let parsed: VersionSelection = serde_json::from_slice(text).ok()?;
        let is_valid = is_version_name(&parsed.current)
            && parsed.previous.as_deref().is_none_or(is_version_name);
        is_valid.then_some(parsed)
    }

    /// The selection after `version` is selected.
    pub(super) fn select(self, version: &str) -> VersionSelection {
        if self.current == version {
            return self;
        }
        VersionSelection { current: version.to_owned(), previous: Some(self.current) }
    }

    pub(super) fn contains(&self, version: &str) -> bool {
        self.current == version || self.previous.as_deref() == Some(version)
    }
}

/// The content of `installed.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRecord {
    pub format: u32,
    pub agent: String,
    /// The packages; the first has the version of the agent.
    pub packages: Vec<PackageRecord>,
    /// What the program printed for its version.
    pub reported_version: String,
}

/// The format of [`InstallRecord`] that this program writes.
pub(crate) const RECORD_FORMAT: u32 = 1;

/// One package with its exact version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    pub source: PackageSource,
    /// The name in its registry, or the address of an archive.
    pub name: String,
    pub version: String,
    /// The checksum of its archive, in the form of the registry: `sha512-…` or `sha256=…`.
    pub integrity: String,
}

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageSource {
    Npm,
    Pypi,
    Archive,
}

impl PackageSource {
    pub fn name(self) -> &'static str {
        match self {
            PackageSource::Npm => "npm",
            PackageSource::Pypi => "PyPI",
            PackageSource::Archive => "its vendor",
        }
    }
}

impl InstallRecord {
    /// The version of the agent.
    pub fn version(&self) -> &str {
        self.packages.first().map_or("", |it| &it.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_remembers_the_version_before() {
        let first = VersionSelection { current: "1".to_owned(), previous: None };
        let second = first.clone().select("2");
        assert_eq!(second.previous.as_deref(), Some("1"));
        assert_eq!(second.clone().select("2"), second);
        assert_eq!(first.clone().select("1"), first);
        assert!(second.contains("1") && second.contains("2") && !second.contains("3"));
    }

    #[test]
    fn selection_with_a_path_is_refused() {
        assert!(VersionSelection::parse(br#"{"current":"1.0"}"#).is_some());
        assert_eq!(VersionSelection::parse(br#"{"current":"../1.0"}"#), None);
        assert_eq!(VersionSelection::parse(br#"{"current":"1","previous":"/tmp"}"#), None);
        assert_eq!(VersionSelection::parse(b""), None);
    }
}
