//! What earlier probes learned, kept in a file and believed as long as program and spec are the same.

use super::Knowledge;
use crate::find::Found;
use jackfield_catalogue::Spec;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Raised when a member changes its meaning: an older file is forgotten.
const FORMAT: u32 = 1;

#[derive(Debug, Default)]
pub struct Cache {
    path: PathBuf,
    pages: BTreeMap<String, Page>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    program: PathBuf,
    changed_ns: i64,
    spec: u64,
    knowledge: Knowledge,
}

#[derive(Serialize, Deserialize)]
struct File<P> {
    format: u32,
    agents: P,
}

impl Cache {
    /// A file that is missing or damaged is an empty one: it can all be asked again.
    pub fn load(path: &Path) -> Cache {
        let read = fs::read(path).ok();
        let file = read.and_then(|it| serde_json::from_slice::<File<BTreeMap<_, _>>>(&it).ok());
        let pages = file.filter(|it| it.format == FORMAT).map(|it| it.agents).unwrap_or_default();
        Cache { path: path.to_owned(), pages }
    }

    /// What is known of an agent whose program is this one.
    pub fn get(&self, spec: &Spec, found: &Found) -> Option<&Knowledge> {
        let page = self.pages.get(&spec.id)?;
        let same = page.program == found.path
            && page.spec == fingerprint(spec)
            && Some(page.changed_ns) == changed_ns(&found.path);
        same.then_some(&page.knowledge)
    }

    pub fn put(&mut self, spec: &Spec, found: &Found, knowledge: Knowledge) {
        let Some(changed_ns) = changed_ns(&found.path) else { return };
        let (program, fingerprint) = (found.path.clone(), fingerprint(spec));
        let page = Page { program, changed_ns, spec: fingerprint, knowledge };
        self.pages.insert(spec.id.clone(), page);
    }

    /// Writes the file anew; whoever reads meanwhile sees the old one or the new one.
    pub fn save(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&File { format: FORMAT, agents: &self.pages })?;
        jackfield_private_files::replace_file(&self.path, &text)
    }
}

/// When the program itself last changed, behind all links.
fn changed_ns(program: &Path) -> Option<i64> {
    let meta = fs::metadata(program).ok()?;
    Some(meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec()))
}

/// Another compiler may give another number; then everything is asked once more.
fn fingerprint(spec: &Spec) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{spec:?}").hash(&mut hasher);
    hasher.finish()
}
