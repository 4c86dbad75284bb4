//! `THIRD-PARTY-LICENSES.txt`: the license texts of all crates that are compiled into the program. Most licenses require
//! that a binary comes with them.

use super::sbom::{Component, read_components};
use anyhow::{Context as _, Result};
use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const FILE_STARTS: [&str; 4] = ["license", "licence", "copying", "notice"];

/// Each text is printed once, below the names of all packages that have it.
pub(super) fn collect() -> Result<String> {
    let sources = list_sources()?;
    let components = read_components()?;
    let mut packages_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut text = String::from("Jackfield contains these packages:\n\n");
    for component in components.iter().filter(|it| !it.is_build_only && !it.is_own()) {
        let Component { name, version, license, .. } = component;
        let title = format!("{name} {version}");
        let _ = writeln!(text, "{title}: {license}");
        for folder in sources.iter().map(|it| it.join(format!("{name}-{version}"))) {
            for license_text in read_texts(&folder)? {
                packages_by_text.entry(license_text).or_default().push(title.clone());
            }
        }
    }
    let mut sections: Vec<(Vec<String>, String)> =
        packages_by_text.into_iter().map(|(text, packages)| (packages, text)).collect();
    sections.sort();
    for (mut packages, license_text) in sections {
        packages.dedup();
        let line = "-".repeat(80);
        let _ = write!(text, "\n{line}\n{}\n\n{license_text}\n", packages.join(", "));
    }
    Ok(text)
}

/// The folders into which cargo unpacks crates, one for each registry.
fn list_sources() -> Result<Vec<PathBuf>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("no home")?;
    let folder = home.join("registry/src");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("failed to read {}", folder.display()))?;
    entries.map(|it| Ok(it?.path())).collect()
}

fn read_texts(folder: &Path) -> Result<Vec<String>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut texts = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && FILE_STARTS.iter().any(|it| name.starts_with(it)) {
            let bytes = fs::read(entry.path())
                .with_context(|| format!("failed to read {}", entry.path().display()))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            texts.push(text.trim_matches('\n').to_owned());
        }
    }
    texts.sort();
    Ok(texts)
}
