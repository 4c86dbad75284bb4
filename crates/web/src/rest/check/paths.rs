//! Which directories and files a client may name. Links are followed first, then it is checked where
//! that led.

use crate::rest::error::{ApiError, Code};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where agents may be put to work, and where pictures are.
#[derive(Debug, Clone, Default)]
pub struct Dirs {
    /// The directory of each project is in here.
    pub projects: PathBuf,
    /// Pictures that were uploaded are in here.
    pub uploads: PathBuf,
    /// A client may name directories below these.
    pub roots: Vec<PathBuf>,
}

/// Files a client may name at once.
const NAMED_MAX: usize = 64;
/// Files an agent is told of, and how deep they are looked for.
const LISTED_MAX: usize = 100;
const DEPTH_MAX: usize = 4;
/// Directories that a listing is better without.
const SKIPPED: &[&str] = &["node_modules", "target", "__pycache__"];

impl Dirs {
    /// The directory of a project, which is made if it is not there.
    pub(super) fn project(&self, id: &str) -> Result<PathBuf, ApiError> {
        let plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
        let dots = id.chars().all(|it| it == '.');
        if id.is_empty() || 128 < id.len() || !id.chars().all(plain) || dots {
            let why = "use 1 to 128 letters, digits, `.`, `_` and `-`, not dots alone";
            return Err(ApiError::invalid(format!(
                "`{}` is no projectId: {why}",
                id.escape_debug()
            )));
        }
        let failed = |error: std::io::Error| {
            ApiError::new(Code::InternalError, format!("project `{id}` has no directory: {error}"))
        };
        let dir = self.projects.join(id);
        jackfield_private_files::create_dir(&dir).map_err(failed)?;
        let found = dir.canonicalize().map_err(failed)?;
        let projects = self.projects.canonicalize().map_err(failed)?;
        if found.parent() == Some(&projects) && found.is_dir() {
            Ok(found)
        } else {
            Err(ApiError::invalid(format!("project `{id}` leads out of the projects directory")))
        }
    }

    /// A directory that a client names outright.
    pub(super) fn below_roots(&self, path: &str) -> Result<PathBuf, ApiError> {
        let shown = path.escape_debug();
        if !Path::new(path).is_absolute() {
            return Err(ApiError::invalid(format!(
                "`cwd` must be an absolute path, not `{shown}`"
            )));
        }
        let found = found(Path::new(path), path)?;
        if !found.is_dir() {
            return Err(ApiError::invalid(format!("`{shown}` is no directory")));
        }
        let roots = self.roots.iter().chain([&self.projects]);
        let below = |root: &PathBuf| root.canonicalize().is_ok_and(|it| found.starts_with(it));
        if roots.into_iter().any(below) {
            return Ok(found);
        }
        let way = "add one above it to `roots` under [http] in config.toml";
        Err(ApiError::invalid(format!("`{shown}` is below none of the configured roots: {way}")))
    }
}

/// Files below the working directory, as paths relative to it.
pub(super) fn attachments(cwd: &Path, paths: &[String]) -> Result<Vec<String>, ApiError> {
    few(paths)?;
    paths.iter().map(|it| Ok(confined(cwd, &[cwd], it)?.1)).collect()
}

/// Refuses more files than anybody names.
pub(super) fn few(paths: &[String]) -> Result<(), ApiError> {
    let fits = paths.len() <= NAMED_MAX;
    let why = || format!("{} files are named, and {NAMED_MAX} may be", paths.len());
    if fits { Ok(()) } else { Err(ApiError::invalid(why())) }
}

/// A file that lies in one of `dirs`, where it is and how it is called from there. A relative path
/// is one of the working directory.
pub(super) fn confined(
    cwd: &Path,
    dirs: &[&Path],
    path: &str,
) -> Result<(PathBuf, String), ApiError> {
    let shown = path.escape_debug();
    let found = found(&cwd.join(path), path)?;
    if !found.is_file() {
        return Err(ApiError::invalid(format!("`{shown}` is no file")));
    }
    let dirs = dirs.iter().filter_map(|it| it.canonicalize().ok());
    let below = dirs.into_iter().find_map(|dir| Some(found.strip_prefix(dir).ok()?.to_owned()));
    let outside = || format!("`{shown}` is outside of the directories that files may be in");
    let relative = below.ok_or_else(|| ApiError::invalid(outside()))?;
    Ok((found, relative.display().to_string()))
}

fn found(path: &Path, named: &str) -> Result<PathBuf, ApiError> {
    path.canonicalize().map_err(|error| {
        let why = format!("cannot use `{}`: {error}", named.escape_debug());
        ApiError::new(Code::FileNotFound, why)
    })
}

/// The files of a directory, and whether there are more.
pub(super) fn listing(dir: &Path) -> (Vec<String>, bool) {
    let mut files = Vec::new();
    let more = list(dir, Path::new(""), 1, &mut files);
    (files, more)
}

/// Returns whether something was left out.
fn list(dir: &Path, below: &Path, depth: usize, files: &mut Vec<String>) -> bool {
    let mut entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut more = false;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = below.join(&name);
        if LISTED_MAX <= files.len() {
            return true;
        }
        if !kind.is_dir() {
            files.push(path.display().to_string());
        } else if depth < DEPTH_MAX {
            more |= list(&entry.path(), &path, depth + 1, files);
        } else {
            more = true;
        }
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct House {
        dir: tempfile::TempDir,
        dirs: Dirs,
    }

    fn house() -> House {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["projects", "uploads", "roots/work/src", "outside"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("roots/work/src/a.rs"), "").unwrap();
        fs::write(at("outside/secret"), "").unwrap();
        let dirs = Dirs {
            projects: at("projects"),
            uploads: at("uploads"),
            roots: vec![at("roots"), at("not-there")],
        };
        House { dir, dirs }
    }

    fn why<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn a_project_is_a_directory_of_its_own_and_cannot_lead_out() {
        let House { dir, dirs } = house();
        let found = dirs.project("p-1_x.y").unwrap();
        assert_eq!(found, dirs.projects.canonicalize().unwrap().join("p-1_x.y"));
        assert_eq!(dirs.project("p-1_x.y").unwrap(), found);
        for bad in ["", ".", "..", "...", "a/b", "../x", "a\0", "é", &"x".repeat(129)] {
            assert!(why(dirs.project(bad)).contains("is no projectId"), "{bad}");
        }
        symlink(dir.path().join("outside"), dirs.projects.join("link")).unwrap();
        assert!(why(dirs.project("link")).contains("leads out"));
    }

    #[test]
    fn a_directory_must_be_below_a_root_wherever_its_links_lead() {
        let House { dir, dirs } = house();
        let path = |name: &str| dir.path().join(name).display().to_string();
        assert!(dirs.below_roots(&path("roots/work")).unwrap().ends_with("roots/work"));
        assert!(dirs.below_roots(&path("roots/work/../work/src")).is_ok());
        assert!(why(dirs.below_roots(&path("outside"))).contains("none of the configured roots"));
        assert!(why(dirs.below_roots(&path("roots/../outside"))).contains("none of the"));
        assert!(why(dirs.below_roots("roots/work")).contains("absolute"));
        assert!(why(dirs.below_roots(&path("roots/work/src/a.rs"))).contains("no directory"));
        assert!(why(dirs.below_roots(&path("roots/nothing"))).contains("cannot use"));
        symlink(dir.path().join("outside"), dir.path().join("roots/link")).unwrap();
        assert!(why(dirs.below_roots(&path("roots/link"))).contains("none of the configured"));
    }

    #[test]
    fn an_attachment_is_a_file_below_the_working_directory() {
        let House { dir, .. } = house();
        let cwd = dir.path().join("roots/work");
        let attached = |path: &str| attachments(&cwd, &[path.to_owned()]);
        assert_eq!(attached("src/a.rs").unwrap(), ["src/a.rs"]);
        let whole = cwd.join("src/../src/a.rs").display().to_string();
        assert_eq!(attached(&whole).unwrap(), ["src/a.rs"]);
        assert!(why(attached("../../outside/secret")).contains("outside of"));
        assert!(why(attached("src")).contains("is no file"));
        assert!(why(attached("src/b.rs")).contains("cannot use"));
        symlink(dir.path().join("outside/secret"), cwd.join("link")).unwrap();
        assert!(why(attached("link")).contains("outside of"));
        let many = vec!["src/a.rs".to_owned(); NAMED_MAX + 1];
        assert!(why(attachments(&cwd, &many)).contains("may be"));
    }

    #[test]
    fn a_listing_is_sorted_bounded_and_without_what_nobody_wrote() {
        let House { dir, .. } = house();
        let cwd = dir.path().join("roots/work");
        for name in [".git/x", "node_modules/y", "b", "src/deep/er/and/deeper"] {
            let path = cwd.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(listing(&cwd), (vec!["b".into(), "src/a.rs".into()], true));
        for number in 0..LISTED_MAX {
            fs::write(cwd.join(format!("n{number:03}")), "").unwrap();
        }
        let (files, more) = listing(&cwd);
        assert_eq!((files.len(), more), (LISTED_MAX, true));
    }
}
