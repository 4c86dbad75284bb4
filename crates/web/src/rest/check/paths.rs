//! Validates the directories and files that a client names. Symbolic links are resolved before the check.

use crate::rest::error::{ApiError, ErrorCode};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The directories in which agents may work, and the directory of uploaded images.
#[derive(Debug, Clone, Default)]
pub struct WorkDirs {
    /// The parent of the project directories.
    pub projects: PathBuf,
    /// The directory of uploaded images.
    pub uploads: PathBuf,
    /// Clients may name directories below these.
    pub roots: Vec<PathBuf>,
}

/// The number of files that a request may name.
const FILES_MAX: usize = 64;
/// The number of files in a listing, and its depth.
const LISTED_MAX: usize = 100;
const DEPTH_MAX: usize = 4;
/// Directories that a listing leaves out.
const SKIPPED_DIRS: &[&str] = &["node_modules", "target", "__pycache__"];

impl WorkDirs {
    /// The directory of a project, which is created if necessary.
    pub(crate) fn resolve_project(&self, id: &str) -> Result<PathBuf, ApiError> {
        let is_allowed = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
        let is_only_dots = id.chars().all(|it| it == '.');
        if id.is_empty() || 128 < id.len() || !id.chars().all(is_allowed) || is_only_dots {
            let why = "use 1 to 128 letters, digits, `.`, `_` and `-`, and not only dots";
            return Err(ApiError::invalid(format!(
                "`{}` is not a valid projectId: {why}",
                id.escape_debug()
            )));
        }
        let failed = |error: std::io::Error| {
            ApiError::new(
                ErrorCode::InternalError,
                format!("failed to create the directory of project `{id}`: {error}"),
            )
        };
        let dir = self.projects.join(id);
        jackfield_private_files::create_dir(&dir).map_err(failed)?;
        let found = dir.canonicalize().map_err(failed)?;
        let projects = self.projects.canonicalize().map_err(failed)?;
        if found.parent() == Some(&projects) && found.is_dir() {
            Ok(found)
        } else {
            Err(ApiError::invalid(format!(
                "project `{id}` leads outside of the projects directory"
            )))
        }
    }

    /// Checks that a directory is below one of the roots.
    pub(super) fn resolve_cwd(&self, path: &str) -> Result<PathBuf, ApiError> {
        if !Path::new(path).is_absolute() {
            let shown = path.escape_debug();
            let why = format!("`cwd` must be an absolute path, not `{shown}`");
            return Err(ApiError::invalid(why));
        }
        self.resolve_dir(Path::new(path), path, None)
    }

    /// Checks directories beside the working directory: each is below it or below one of the roots.
    pub(super) fn resolve_more_dirs(
        &self,
        cwd: &Path,
        paths: &[String],
    ) -> Result<Vec<PathBuf>, ApiError> {
        check_count(paths)?;
        paths.iter().map(|it| self.resolve_dir(&cwd.join(it), it, Some(cwd))).collect()
    }

    /// Checks that a directory is below one of the roots, or below `cwd`.
    fn resolve_dir(
        &self,
        path: &Path,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<PathBuf, ApiError> {
        let shown = name.escape_debug();
        let found = canonicalize(path, name)?;
        if !found.is_dir() {
            return Err(ApiError::invalid(format!("`{shown}` is not a directory")));
        }
        if cwd.is_some_and(|it| found.starts_with(it)) {
            return Ok(found);
        }
        let roots = self.roots.iter().chain([&self.projects]);
        let below = |root: &PathBuf| root.canonicalize().is_ok_and(|it| found.starts_with(it));
        if roots.into_iter().any(below) {
            return Ok(found);
        }
        let hint = "add a parent directory to `roots` under [http] in config.toml";
        Err(ApiError::invalid(format!(
            "`{shown}` is not below any of the configured roots: {hint}"
        )))
    }
}

/// Checks files below the working directory or in the uploads directory. Returns the paths of the former relative to
/// the working directory, and those of the latter as they are.
pub(super) fn check_attachments(
    cwd: &Path,
    dirs: &WorkDirs,
    paths: &[String],
) -> Result<Vec<String>, ApiError> {
    check_count(paths)?;
    let check = |path: &String| {
        let (found, relative) = resolve_file(cwd, &[cwd, &dirs.uploads], path)?;
        let is_in_cwd = cwd.canonicalize().is_ok_and(|it| found.starts_with(it));
        Ok(if is_in_cwd { relative } else { found.display().to_string() })
    };
    paths.iter().map(check).collect()
}

/// Fails if a request names too many files.
pub(super) fn check_count(paths: &[String]) -> Result<(), ApiError> {
    let fits = paths.len() <= FILES_MAX;
    let why = || format!("{} files are named; the limit is {FILES_MAX}", paths.len());
    if fits { Ok(()) } else { Err(ApiError::invalid(why())) }
}

/// Checks that a file is below one of `dirs`. Returns its path, and its path relative to that directory.
/// A relative path is resolved in the working directory.
pub(super) fn resolve_file(
    cwd: &Path,
    dirs: &[&Path],
    path: &str,
) -> Result<(PathBuf, String), ApiError> {
    let shown = path.escape_debug();
    let found = canonicalize(&cwd.join(path), path)?;
    if !found.is_file() {
        return Err(ApiError::invalid(format!("`{shown}` is not a file")));
    }
    let dirs = dirs.iter().filter_map(|it| it.canonicalize().ok());
    let below = dirs.into_iter().find_map(|dir| Some(found.strip_prefix(dir).ok()?.to_owned()));
    let outside = || format!("`{shown}` is outside of the allowed directories");
    let relative = below.ok_or_else(|| ApiError::invalid(outside()))?;
    Ok((found, relative.display().to_string()))
}

fn canonicalize(path: &Path, name: &str) -> Result<PathBuf, ApiError> {
    path.canonicalize().map_err(|error| {
        let why = format!("cannot use `{}`: {error}", name.escape_debug());
        ApiError::new(ErrorCode::FileNotFound, why)
    })
}

/// The files of a directory, and whether some are left out.
pub(super) fn list_files(dir: &Path) -> (Vec<String>, bool) {
    let mut files = Vec::new();
    let has_more = collect_files(dir, Path::new(""), 1, &mut files);
    (files, has_more)
}

/// Returns whether some files are left out.
fn collect_files(dir: &Path, below: &Path, depth: usize, files: &mut Vec<String>) -> bool {
    let mut entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut has_more = false;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || SKIPPED_DIRS.contains(&name.as_str()) {
            continue;
        }
        let path = below.join(&name);
        if LISTED_MAX <= files.len() {
            return true;
        }
        if !kind.is_dir() {
            files.push(path.display().to_string());
        } else if depth < DEPTH_MAX {
            has_more |= collect_files(&entry.path(), &path, depth + 1, files);
        } else {
            has_more = true;
        }
    }
    has_more
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct TestDirs {
        dir: tempfile::TempDir,
        dirs: WorkDirs,
    }

    fn test_dirs() -> TestDirs {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["projects", "uploads", "roots/work/src", "outside"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("roots/work/src/a.rs"), "").unwrap();
        fs::write(at("outside/secret"), "").unwrap();
        let dirs = WorkDirs {
            projects: at("projects"),
            uploads: at("uploads"),
            roots: vec![at("roots"), at("not-there")],
        };
        TestDirs { dir, dirs }
    }

    fn why<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn project_has_its_own_directory_and_cannot_lead_outside() {
        let TestDirs { dir, dirs } = test_dirs();
        let found = dirs.resolve_project("p-1_x.y").unwrap();
        assert_eq!(found, dirs.projects.canonicalize().unwrap().join("p-1_x.y"));
        assert_eq!(dirs.resolve_project("p-1_x.y").unwrap(), found);
        for bad in ["", ".", "..", "...", "a/b", "../x", "a\0", "é", &"x".repeat(129)] {
            assert!(why(dirs.resolve_project(bad)).contains("is not a valid projectId"), "{bad}");
        }
        symlink(dir.path().join("outside"), dirs.projects.join("link")).unwrap();
        assert!(why(dirs.resolve_project("link")).contains("leads outside"));
    }

    #[test]
    fn resolved_directory_must_be_below_a_root() {
        let TestDirs { dir, dirs } = test_dirs();
        let path = |name: &str| dir.path().join(name).display().to_string();
        assert!(dirs.resolve_cwd(&path("roots/work")).unwrap().ends_with("roots/work"));
        assert!(dirs.resolve_cwd(&path("roots/work/../work/src")).is_ok());
        assert!(
            why(dirs.resolve_cwd(&path("outside")))
                .contains("not below any of the configured roots")
        );
        assert!(why(dirs.resolve_cwd(&path("roots/../outside"))).contains("not below any of the"));
        assert!(why(dirs.resolve_cwd("roots/work")).contains("absolute"));
        assert!(why(dirs.resolve_cwd(&path("roots/work/src/a.rs"))).contains("not a directory"));
        assert!(why(dirs.resolve_cwd(&path("roots/nothing"))).contains("cannot use"));
        symlink(dir.path().join("outside"), dir.path().join("roots/link")).unwrap();
        assert!(
            why(dirs.resolve_cwd(&path("roots/link"))).contains("not below any of the configured")
        );
    }

    #[test]
    fn more_directories_are_below_the_working_directory_or_a_root() {
        let TestDirs { dir, dirs } = test_dirs();
        let cwd = dirs.resolve_project("p1").unwrap();
        fs::create_dir(cwd.join("skills")).unwrap();
        let resolve = |path: &str| dirs.resolve_more_dirs(&cwd, &[path.to_owned()]);
        assert_eq!(resolve("skills").unwrap(), [cwd.join("skills")]);
        let root = dir.path().join("roots/work").display().to_string();
        assert_eq!(resolve(&root).unwrap().len(), 1);
        let outside = dir.path().join("outside").display().to_string();
        assert!(why(resolve(&outside)).contains("not below any of the configured roots"));
        assert!(why(resolve("../../outside")).contains("not below any of the configured roots"));
        assert!(why(resolve("missing")).contains("cannot use"));
    }

    #[test]
    fn attachment_must_be_a_file_below_the_working_directory_or_an_upload() {
        let TestDirs { dir, dirs } = test_dirs();
        let cwd = dir.path().join("roots/work");
        let attached = |path: &str| check_attachments(&cwd, &dirs, &[path.to_owned()]);
        let upload = dirs.uploads.canonicalize().unwrap().join("a.pdf").display().to_string();
        fs::write(&upload, "").unwrap();
        assert_eq!(attached(&upload).unwrap(), [upload]);
        assert_eq!(attached("src/a.rs").unwrap(), ["src/a.rs"]);
        let whole = cwd.join("src/../src/a.rs").display().to_string();
        assert_eq!(attached(&whole).unwrap(), ["src/a.rs"]);
        assert!(why(attached("../../outside/secret")).contains("outside of"));
        assert!(why(attached("src")).contains("is not a file"));
        assert!(why(attached("src/b.rs")).contains("cannot use"));
        symlink(dir.path().join("outside/secret"), cwd.join("link")).unwrap();
        assert!(why(attached("link")).contains("outside of"));
        let many = vec!["src/a.rs".to_owned(); FILES_MAX + 1];
        assert!(why(check_attachments(&cwd, &dirs, &many)).contains("the limit is"));
    }

    #[test]
    fn listing_is_sorted_bounded_and_without_generated_files() {
        let TestDirs { dir, .. } = test_dirs();
        let cwd = dir.path().join("roots/work");
        for name in [".git/x", "node_modules/y", "b", "src/deep/er/and/deeper"] {
            let path = cwd.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(list_files(&cwd), (vec!["b".into(), "src/a.rs".into()], true));
        for number in 0..LISTED_MAX {
            fs::write(cwd.join(format!("n{number:03}")), "").unwrap();
        }
        let (files, has_more) = list_files(&cwd);
        assert_eq!((files.len(), has_more), (LISTED_MAX, true));
    }
}
