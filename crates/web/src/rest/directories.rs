//! The route `/api/directories`: browses the directories in which sessions may work.

use crate::rest::{
    RestState,
    check::{WorkDirs, run_blocking},
    error::{ApiError, ErrorBody, ErrorCode},
    extract::QueryParams,
};
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use utoipa::{IntoParams, ToSchema};

/// The number of directories in a response.
const LISTED_MAX: usize = 1000;
/// The number of entries that are read of one directory, so that a huge one is answered in time.
const READ_MAX: usize = 20_000;

/// A directory and those in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "path": "/srv/checkouts", "parent": null, "roots": ["/srv/checkouts"], "hasMore": false,
    "directories": [{ "name": "parser", "path": "/srv/checkouts/parser", "isRepository": true }],
}))]
pub(crate) struct DirectoryList {
    /// The directory, without links; `null` for the list of roots.
    path: Option<String>,
    /// The directory that it is in; `null` if sessions may not work there.
    parent: Option<String>,
    /// The directories in it, by name.
    directories: Vec<DirectoryEntry>,
    /// The directories below which sessions may work.
    roots: Vec<String>,
    /// Some directories are left out.
    has_more: bool,
}

/// A directory.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DirectoryEntry {
    name: String,
    path: String,
    /// It has a `.git`.
    is_repository: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DirectoriesQuery {
    /// An absolute path below one of the roots [default: list the roots].
    #[param(example = "/srv/checkouts")]
    path: Option<String>,
}

/// List the directories in which sessions may work
///
/// Links that lead out of the roots are left out.
#[utoipa::path(
    get, path = "/api/directories", tag = "sessions", params(DirectoriesQuery),
    responses(
        (status = 200, description = "the directories", body = DirectoryList),
        (status = 400, description = "the path is not a directory below one of the roots", body = ErrorBody),
        (status = 409, description = "this is a gateway of a fleet, and the directories are on its hosts", body = ErrorBody),
    ),
)]
pub(crate) async fn list_directories(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<DirectoriesQuery>,
) -> Result<Json<DirectoryList>, ApiError> {
    if state.agents.is_hosted() {
        let why = "the directories of a fleet are on the hosts, and a gateway cannot list them: name one, or use the \
                   directory of another session";
        return Err(ApiError::new(ErrorCode::Conflict, why));
    }
    let dirs = state.dirs.clone();
    let list = run_blocking(move || DirectoryRoots::new(&dirs).list(query.path.as_deref())).await?;
    Ok(Json(list))
}

/// The directories below which sessions may work, without links.
#[derive(Debug)]
struct DirectoryRoots(Vec<PathBuf>);

impl DirectoryRoots {
    fn new(dirs: &WorkDirs) -> DirectoryRoots {
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in dirs.roots.iter().chain([&dirs.projects]) {
            if let Ok(root) = root.canonicalize()
                && root.is_dir()
                && !roots.contains(&root)
            {
                roots.push(root);
            }
        }
        DirectoryRoots(roots)
    }

    /// Whether a path without links is one of the roots or below one.
    fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|it| path.starts_with(it))
    }

    fn list(&self, path: Option<&str>) -> Result<DirectoryList, ApiError> {
        let roots = self.0.iter().filter_map(|it| Some(it.to_str()?.to_owned())).collect();
        let Some(path) = path else {
            let directories = self.0.iter().filter_map(|it| DirectoryEntry::new(it.to_str()?, it));
            let directories = directories.collect();
            let (path, parent, has_more) = (None, None, false);
            return Ok(DirectoryList { path, parent, directories, roots, has_more });
        };
        // The same answer for a directory that does not exist and for one that is outside: clients learn nothing
        // about other directories.
        let found = Path::new(path).canonicalize().ok();
        let found = found.filter(|it| Path::new(path).is_absolute() && self.contain(it));
        let Some(dir) = found.filter(|it| it.is_dir()) else {
            let hint = "GET /api/directories lists the roots";
            let shown = path.escape_debug();
            let why = format!("`{shown}` is not a directory below one of the roots: {hint}");
            return Err(ApiError::invalid(why));
        };
        let (directories, has_more) = self.read_entries(&dir).map_err(|error| {
            ApiError::invalid(format!("cannot read `{}`: {error}", path.escape_debug()))
        })?;
        let parent = dir.parent().filter(|it| self.contain(it)).and_then(Path::to_str);
        let parent = parent.map(str::to_owned);
        let path = Some(dir.display().to_string());
        Ok(DirectoryList { path, parent, directories, roots, has_more })
    }

    /// The directories in a directory by name, and whether some are left out. Names that are not UTF-8 are left out,
    /// because a request could not name them.
    fn read_entries(&self, dir: &Path) -> io::Result<(Vec<DirectoryEntry>, bool)> {
        let mut names: Vec<String> = Vec::new();
        let mut entries = fs::read_dir(dir)?;
        for entry in entries.by_ref().take(READ_MAX).filter_map(Result::ok) {
            let may_be_directory = entry.file_type().is_ok_and(|it| it.is_dir() || it.is_symlink());
            if may_be_directory && let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        let mut has_more = entries.next().is_some();
        names.sort_by_cached_key(|it| (it.to_lowercase(), it.clone()));
        let mut directories = Vec::new();
        for name in names {
            let found = dir.join(&name).canonicalize().ok();
            let found = found.filter(|it| self.contain(it) && it.is_dir());
            let Some(entry) = found.and_then(|it| DirectoryEntry::new(&name, &it)) else {
                continue;
            };
            if directories.len() == LISTED_MAX {
                has_more = true;
                break;
            }
            directories.push(entry);
        }
        Ok((directories, has_more))
    }
}

impl DirectoryEntry {
    fn new(name: &str, dir: &Path) -> Option<DirectoryEntry> {
        let is_repository = dir.join(".git").symlink_metadata().is_ok();
        Some(DirectoryEntry {
            name: name.to_owned(),
            path: dir.to_str()?.to_owned(),
            is_repository,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, os::unix::fs::symlink};

    struct TestRoots {
        dir: tempfile::TempDir,
        roots: DirectoryRoots,
    }

    /// Two roots, and a directory outside of them.
    fn test_roots() -> TestRoots {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["projects", "roots/work/src", "roots/Api/.git", "outside/secret"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("roots/file"), "").unwrap();
        let roots = vec![at("roots"), at("missing"), at("roots")];
        let dirs = WorkDirs { projects: at("projects"), uploads: at("uploads"), roots };
        TestRoots { roots: DirectoryRoots::new(&dirs), dir }
    }

    impl TestRoots {
        fn path(&self, name: &str) -> String {
            self.dir.path().canonicalize().unwrap().join(name).display().to_string()
        }

        fn names(&self, path: &str) -> Vec<String> {
            let list = self.roots.list(Some(&self.path(path))).unwrap();
            list.directories.into_iter().map(|it| it.name).collect()
        }
    }

    #[test]
    fn roots_are_listed_first_and_directories_by_name() {
        let test = test_roots();
        let list = test.roots.list(None).unwrap();
        assert_eq!(list.roots, [test.path("roots"), test.path("projects")]);
        let paths: Vec<&String> = list.directories.iter().map(|it| &it.path).collect();
        assert_eq!(paths, list.roots.iter().collect::<Vec<_>>());
        let list = test.roots.list(Some(&test.path("roots"))).unwrap();
        assert_eq!((list.parent, list.has_more), (None, false));
        let rows: Vec<(&str, bool)> =
            list.directories.iter().map(|it| (&*it.name, it.is_repository)).collect();
        assert_eq!(rows, [("Api", true), ("work", false)]);
        let list = test.roots.list(Some(&test.path("roots/work/../work/src"))).unwrap();
        assert_eq!(list.path, Some(test.path("roots/work/src")));
        assert_eq!(list.parent, Some(test.path("roots/work")));
    }

    #[test]
    fn outside_and_missing_directories_have_the_same_answer() {
        let test = test_roots();
        let refused = |path: &str| {
            let why = test.roots.list(Some(path)).unwrap_err().message;
            why.replace(path, "PATH")
        };
        let missing = refused(&test.path("roots/nothing"));
        assert!(missing.contains("is not a directory below one of the roots"), "{missing}");
        let outside =
            ["outside", "outside/nothing", "roots/../outside", "roots/file", "rootsbeside"];
        for path in outside.map(|it| test.path(it)) {
            assert_eq!(refused(&path), missing, "{path}");
        }
        for path in ["", ".", "roots", "/", "/proc/self/root", "~", "\0"] {
            assert!(test.roots.list(Some(path)).is_err(), "{path:?}");
        }
    }

    #[test]
    fn links_are_followed_inside_the_roots_only() {
        let test = test_roots();
        symlink(test.path("outside"), test.path("roots/out")).unwrap();
        symlink(test.path("roots/loop"), test.path("roots/loop")).unwrap();
        symlink(test.path("roots/work/src"), test.path("roots/to-src")).unwrap();
        assert_eq!(test.names("roots"), ["Api", "to-src", "work"]);
        let linked = test.roots.list(Some(&test.path("roots/to-src"))).unwrap();
        assert_eq!(linked.path, Some(test.path("roots/work/src")));
        for path in ["roots/out", "roots/out/secret", "roots/loop"] {
            assert!(test.roots.list(Some(&test.path(path))).is_err(), "{path}");
        }
    }

    #[test]
    fn huge_directory_is_cut_and_odd_names_are_left_out() {
        let test = test_roots();
        let many = PathBuf::from(test.path("roots/many"));
        for number in 0..=LISTED_MAX {
            fs::create_dir_all(many.join(format!("d{number:05}"))).unwrap();
        }
        fs::create_dir(many.join(OsStr::from_bytes(b"\xff"))).unwrap();
        let list = test.roots.list(Some(&many.display().to_string())).unwrap();
        assert_eq!((list.directories.len(), list.has_more), (LISTED_MAX, true));
        assert_eq!(list.directories[0].name, "d00000");
    }
}
