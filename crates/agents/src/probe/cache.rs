//! Stores probe results in a file. A result is valid as long as program and spec are unchanged.

use super::ProbeResult;
use crate::find::FoundProgram;
use jackfield_catalog::AgentSpec;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Increased when a member changes its meaning; older files are then ignored.
const FORMAT: u32 = 1;

/// The probe results of all agents.
#[derive(Debug, Default)]
pub struct ProbeCache {
    path: PathBuf,
    results: BTreeMap<String, CachedResult>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CachedResult {
    program: PathBuf,
    changed_ns: i64,
    spec: u64,
    #[serde(rename = "knowledge")]
    result: ProbeResult,
}

#[derive(Serialize, Deserialize)]
struct CacheFile<P> {
    format: u32,
    agents: P,
}

impl ProbeCache {
    /// Reads the file. A missing or damaged file counts as empty, because probes can be repeated.
    pub fn load(path: &Path) -> ProbeCache {
        let read = fs::read(path).ok();
        let file =
            read.and_then(|it| serde_json::from_slice::<CacheFile<BTreeMap<_, _>>>(&it).ok());
        let results = file.filter(|it| it.format == FORMAT).map(|it| it.agents).unwrap_or_default();
        ProbeCache { path: path.to_owned(), results }
    }

    /// The result for an agent, if it was made with this program.
    pub fn get(&self, spec: &AgentSpec, found: &FoundProgram) -> Option<&ProbeResult> {
        let cached = self.results.get(&spec.id)?;
        let is_current = cached.program == found.path
            && cached.spec == fingerprint(spec)
            && Some(cached.changed_ns) == changed_ns(&found.path);
        is_current.then_some(&cached.result)
    }

    pub fn insert(&mut self, spec: &AgentSpec, found: &FoundProgram, result: ProbeResult) {
        let Some(changed_ns) = changed_ns(&found.path) else { return };
        let (program, fingerprint) = (found.path.clone(), fingerprint(spec));
        let cached = CachedResult { program, changed_ns, spec: fingerprint, result };
        self.results.insert(spec.id.clone(), cached);
    }

    /// Replaces the file atomically.
    pub fn save(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&CacheFile { format: FORMAT, agents: &self.results })?;
        jackfield_private_files::replace_file(&self.path, &text)
    }
}

/// The modification time of the program, with symbolic links resolved.
fn changed_ns(program: &Path) -> Option<i64> {
    let meta = fs::metadata(program).ok()?;
    Some(meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec()))
}

/// A hash of the spec. Another compiler may produce another value; then the probe is repeated.
fn fingerprint(spec: &AgentSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{spec:?}").hash(&mut hasher);
    hasher.finish()
}
