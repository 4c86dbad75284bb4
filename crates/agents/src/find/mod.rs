//! The program of an agent on this machine. Nothing is started to find it.

mod places;

pub use places::{PROGRAM_DIRS, Places};

use jackfield_catalogue::{Spec, Variant};
use rustix::fs::Access;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The name that means this program.
const OURS: &str = "jackfield";

/// A program that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    pub via: Via,
}

/// What led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The variable that names it outright.
    Variable,
    Path,
    /// A folder that is not on `PATH`.
    Folder,
}

impl Via {
    pub fn shown(self) -> &'static str {
        match self {
            Via::Variable => "variable",
            Via::Path => "path",
            Via::Folder => "folder",
        }
    }
}

/// A program that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The names that were looked for.
    pub bins: Vec<String>,
    pub searched: Vec<PathBuf>,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Nowhere,
    /// A file of that name is there and may not be run.
    NotExecutable(PathBuf),
    /// A link of that name leads to nothing.
    Dangling(PathBuf),
    /// The variable that should name it names something else.
    BadVariable {
        name: String,
        value: String,
        why: &'static str,
    },
}

/// The way to start an agent that is used on this machine.
#[derive(Debug, Clone)]
pub struct Chosen<'a> {
    /// Its place among the spec's variants.
    pub index: usize,
    pub variant: &'a Variant,
    pub found: Found,
}

/// Looks for the first of `bins`: where the variable says, on `PATH`, then beside it.
pub fn find(bins: &[String], bin_env: Option<&str>, places: &Places) -> Result<Found, Missing> {
    let missing = |why| Missing { bins: bins.to_vec(), searched: places.searched(), why };
    if let Some((name, value)) = bin_env.and_then(|it| Some((it, places.var(it)?))) {
        let path = places.expand(value);
        return match unusable(&path) {
            None => Ok(Found { path, via: Via::Variable }),
            Some(why) => {
                let (name, value) = (name.to_owned(), value.to_owned());
                Err(missing(Why::BadVariable { name, value, why }))
            }
        };
    }
    let mut near = None;
    for bin in bins {
        // Our own agent is this program, wherever it was put.
        if bin == OURS
            && let Ok(path) = std::env::current_exe()
        {
            return Ok(Found { path, via: Via::Path });
        }
        let on_path = places.path().iter().map(|it| (it, Via::Path));
        let beside = places.others().iter().map(|it| (it, Via::Folder));
        for (dir, via) in on_path.chain(beside) {
            match look(&dir.join(bin)) {
                Look::Program(path) => return Ok(Found { path, via }),
                Look::Near(why) => near = near.or(Some(why)),
                Look::Nothing => {}
            }
        }
    }
    Err(missing(near.unwrap_or(Why::Nowhere)))
}

/// The program of one variant. The variable names the agent's own program and no other.
pub fn find_variant(spec: &Spec, variant: &Variant, places: &Places) -> Result<Found, Missing> {
    let own = variant.bins == spec.bins;
    find(&variant.bins, spec.bin_env.as_deref().filter(|_| own), places)
}

/// The agent's own program: the one that is asked for its version.
pub fn find_own(spec: &Spec, places: &Places) -> Result<Found, Missing> {
    find(&spec.bins, spec.bin_env.as_deref(), places)
}

/// The first variant whose program is found.
pub fn choose<'a>(spec: &'a Spec, places: &Places) -> Result<Chosen<'a>, Missing> {
    let mut all = Missing { bins: Vec::new(), searched: places.searched(), why: Why::Nowhere };
    for (index, variant) in spec.launch.iter().enumerate() {
        match find_variant(spec, variant, places) {
            Ok(found) => return Ok(Chosen { index, variant, found }),
            Err(missing) => {
                let new: Vec<String> =
                    missing.bins.into_iter().filter(|it| !all.bins.contains(it)).collect();
                all.bins.extend(new);
                if all.why == Why::Nowhere {
                    all.why = missing.why;
                }
            }
        }
    }
    Err(all)
}

enum Look {
    Program(PathBuf),
    Near(Why),
    Nothing,
}

fn look(path: &Path) -> Look {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Look::Nothing,
        Ok(_) if is_executable(path) => Look::Program(path.to_owned()),
        Ok(_) => Look::Near(Why::NotExecutable(path.to_owned())),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink()) => {
            Look::Near(Why::Dangling(path.to_owned()))
        }
        Err(_) => Look::Nothing,
    }
}

/// Why a path cannot be what a variable names.
fn unusable(path: &Path) -> Option<&'static str> {
    if !path.is_absolute() {
        return Some("it is not an absolute path");
    }
    match fs::metadata(path) {
        Err(_) => Some("there is no such file"),
        Ok(meta) if !meta.is_file() => Some("it is not a file"),
        Ok(_) if !is_executable(path) => Some("it may not be run"),
        Ok(_) => None,
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests;
