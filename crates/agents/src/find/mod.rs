//! Finds the program of an agent on this machine without starting anything.

mod locations;

pub use locations::{PROGRAM_DIRS, ProgramLocations};

use crate::installed::InstalledVersion;
use jackfield_catalog::{AgentSpec, LaunchVariant};
use rustix::fs::Access;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The name of this program.
const OWN_PROGRAM: &str = "jackfield";

/// A program that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    pub path: PathBuf,
    pub origin: ProgramOrigin,
}

/// How a program was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// By the environment variable that names it.
    Variable,
    /// Jackfield has installed it.
    Installed,
    /// On `PATH`.
    Path,
    /// In a folder that is not on `PATH`.
    Folder,
}

impl ProgramOrigin {
    pub fn name(self) -> &'static str {
        match self {
            ProgramOrigin::Variable => "variable",
            ProgramOrigin::Installed => "installed",
            ProgramOrigin::Path => "path",
            ProgramOrigin::Folder => "folder",
        }
    }
}

/// A program that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// The names that were searched.
    pub bins: Vec<String>,
    pub searched: Vec<PathBuf>,
    pub reason: MissingReason,
}

/// Why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingReason {
    NotFound,
    /// A file of that name exists and is not executable.
    NotExecutable(PathBuf),
    /// A symbolic link of that name has no target.
    Dangling(PathBuf),
    /// The environment variable that should name the program names something else.
    BadVariable {
        name: String,
        value: String,
        reason: &'static str,
    },
}

/// A launch variant of an agent whose program is installed.
#[derive(Debug, Clone)]
pub struct ChosenVariant<'a> {
    /// Its index among the spec's variants.
    pub index: usize,
    pub variant: &'a LaunchVariant,
    pub found: FoundProgram,
}

/// Searches the first of `bins` that exists: the program that the variable names, then on `PATH`,
/// then in the other folders.
pub fn find_program(
    bins: &[String],
    bin_env: Option<&str>,
    locations: &ProgramLocations,
) -> Result<FoundProgram, MissingProgram> {
    search_program(bins, bin_env, None, locations)
}

/// The same for an agent: its program in `installed` comes after the variable and before `PATH`.
fn search_program(
    bins: &[String],
    bin_env: Option<&str>,
    installed: Option<&InstalledVersion>,
    locations: &ProgramLocations,
) -> Result<FoundProgram, MissingProgram> {
    let missing =
        |reason| MissingProgram { bins: bins.to_vec(), searched: locations.searched(), reason };
    if let Some((name, value)) = bin_env.and_then(|it| Some((it, locations.var(it)?))) {
        let path = locations.expand_home(value);
        return match find_path_error(&path) {
            None => Ok(FoundProgram { path, origin: ProgramOrigin::Variable }),
            Some(reason) => {
                let (name, value) = (name.to_owned(), value.to_owned());
                Err(missing(MissingReason::BadVariable { name, value, reason }))
            }
        };
    }
    let mut unusable = None;
    if let Some(bin_dir) = installed.map(InstalledVersion::bin_dir) {
        for bin in bins.iter().filter(|it| !it.contains('/')) {
            match check_path(&bin_dir.join(bin)) {
                PathCheck::Program(path) => {
                    return Ok(FoundProgram { path, origin: ProgramOrigin::Installed });
                }
                PathCheck::Unusable(reason) => unusable = unusable.or(Some(reason)),
                PathCheck::Nothing => {}
            }
        }
    }
    for bin in bins {
        // Our own agent is this program, regardless of where it is installed.
        if bin == OWN_PROGRAM
            && let Ok(path) = std::env::current_exe()
        {
            return Ok(FoundProgram { path, origin: ProgramOrigin::Path });
        }
        let on_path = locations.path().iter().map(|it| (it, ProgramOrigin::Path));
        let beside = locations.others().iter().map(|it| (it, ProgramOrigin::Folder));
        for (dir, origin) in on_path.chain(beside) {
            match check_path(&dir.join(bin)) {
                PathCheck::Program(path) => return Ok(FoundProgram { path, origin }),
                PathCheck::Unusable(reason) => unusable = unusable.or(Some(reason)),
                PathCheck::Nothing => {}
            }
        }
    }
    Err(missing(unusable.unwrap_or(MissingReason::NotFound)))
}

/// Finds the program of one variant. The variable names only the agent's own program.
pub fn find_variant_program(
    spec: &AgentSpec,
    variant: &LaunchVariant,
    locations: &ProgramLocations,
) -> Result<FoundProgram, MissingProgram> {
    let own = variant.bins == spec.bins;
    let installed = locations.find_installed(&spec.id);
    let bin_env = spec.bin_env.as_deref().filter(|_| own);
    search_program(&variant.bins, bin_env, installed.as_ref(), locations)
}

/// Finds the agent's own program, which is queried for its version.
pub fn find_own_program(
    spec: &AgentSpec,
    locations: &ProgramLocations,
) -> Result<FoundProgram, MissingProgram> {
    let installed = locations.find_installed(&spec.id);
    search_program(&spec.bins, spec.bin_env.as_deref(), installed.as_ref(), locations)
}

/// Returns the variants whose program is found, in the order of the spec.
pub fn list_installed_variants<'a>(
    spec: &'a AgentSpec,
    locations: &ProgramLocations,
) -> Vec<ChosenVariant<'a>> {
    let found = spec.launch.iter().enumerate().filter_map(|(index, variant)| {
        let found = find_variant_program(spec, variant, locations).ok()?;
        Some(ChosenVariant { index, variant, found })
    });
    found.collect()
}

/// Returns the first variant whose program is found.
pub fn choose_variant<'a>(
    spec: &'a AgentSpec,
    locations: &ProgramLocations,
) -> Result<ChosenVariant<'a>, MissingProgram> {
    let mut all = MissingProgram {
        bins: Vec::new(),
        searched: locations.searched(),
        reason: MissingReason::NotFound,
    };
    for (index, variant) in spec.launch.iter().enumerate() {
        match find_variant_program(spec, variant, locations) {
            Ok(found) => return Ok(ChosenVariant { index, variant, found }),
            Err(missing) => {
                let new: Vec<String> =
                    missing.bins.into_iter().filter(|it| !all.bins.contains(it)).collect();
                all.bins.extend(new);
                if all.reason == MissingReason::NotFound {
                    all.reason = missing.reason;
                }
            }
        }
    }
    Err(all)
}

/// The result of checking one path.
enum PathCheck {
    Program(PathBuf),
    /// A file that cannot be started.
    Unusable(MissingReason),
    Nothing,
}

fn check_path(path: &Path) -> PathCheck {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => PathCheck::Nothing,
        Ok(_) if is_executable(path) => PathCheck::Program(path.to_owned()),
        Ok(_) => PathCheck::Unusable(MissingReason::NotExecutable(path.to_owned())),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink()) => {
            PathCheck::Unusable(MissingReason::Dangling(path.to_owned()))
        }
        Err(_) => PathCheck::Nothing,
    }
}

/// Why the path in a variable cannot be used; `None` if it can.
fn find_path_error(path: &Path) -> Option<&'static str> {
    if !path.is_absolute() {
        return Some("it is not an absolute path");
    }
    match fs::metadata(path) {
        Err(_) => Some("the file does not exist"),
        Ok(meta) if !meta.is_file() => Some("it is not a file"),
        Ok(_) if !is_executable(path) => Some("it is not executable"),
        Ok(_) => None,
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests;
