//! Stores uploaded files: in the uploads directory, or in a project.

use crate::rest::{
    check::WorkDirs,
    error::{ApiError, ErrorCode},
    runs::random_name,
};
use serde::Serialize;
use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};
use utoipa::ToSchema;

/// The directory of uploads in a project.
const PROJECT_DIR: &str = "uploads";
/// The length of a stored name without its random prefix.
const NAME_CHARS_MAX: usize = 100;

/// A stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "name": "a.png", "path": "uploads/k2m4qabc-a.png", "size": 5120 }))]
pub(crate) struct UploadedFile {
    /// The name that the client sent.
    name: String,
    /// For `imagePaths` of a run, and with a project also for `attachments`.
    path: String,
    size: usize,
}

/// The directory of an upload.
#[derive(Debug)]
pub(super) struct UploadDir {
    dir: PathBuf,
    /// Paths in a project are relative to the project, which is the working directory of its runs.
    is_in_project: bool,
}

impl UploadDir {
    /// The uploads directory of a project, or the one for all; created if necessary.
    pub(super) fn create(dirs: &WorkDirs, project: Option<&str>) -> Result<UploadDir, ApiError> {
        let (parent, dir) = match project {
            Some(project) => {
                let parent = dirs.resolve_project(project)?;
                let dir = parent.join(PROJECT_DIR);
                (Some(parent), dir)
            }
            None => (None, dirs.uploads.clone()),
        };
        jackfield_private_files::create_dir(&dir).map_err(|it| store_error(&dir, &it))?;
        let found = dir.canonicalize().map_err(|it| store_error(&dir, &it))?;
        // An agent may have replaced the directory in its project by a link.
        if parent.as_ref().is_some_and(|it| found != it.join(PROJECT_DIR)) {
            let why =
                format!("`{PROJECT_DIR}` of the project leads outside of it: remove the link");
            return Err(ApiError::invalid(why));
        }
        Ok(UploadDir { dir: found, is_in_project: parent.is_some() })
    }

    /// Stores a file under a new name.
    pub(super) fn store(&self, name: &str, content: &[u8]) -> Result<UploadedFile, ApiError> {
        let stored = format!("{}-{}", random_name(), safe_name(name));
        let file = self.dir.join(&stored);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        jackfield_private_files::open_file(&file, &mut options)
            .and_then(|mut it| it.write_all(content))
            .map_err(|it| store_error(&file, &it))?;
        let path = if self.is_in_project {
            format!("{PROJECT_DIR}/{stored}")
        } else {
            file.display().to_string()
        };
        Ok(UploadedFile { name: name.to_owned(), path, size: content.len() })
    }
}

fn store_error(path: &Path, error: &std::io::Error) -> ApiError {
    let why = format!("failed to store the upload in `{}`: {error}", path.display());
    ApiError::new(ErrorCode::InternalError, why)
}

/// The last component of a name, with only letters, digits, `.`, `_` and `-`, and no leading dot.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |it: char| if it.is_alphanumeric() || "._-".contains(it) { it } else { '-' };
    let safe: String = last.chars().map(plain).collect();
    let safe = safe.trim_start_matches(['.', '-']);
    let excess = safe.chars().count().saturating_sub(NAME_CHARS_MAX);
    // The end has the extension.
    let safe: String = safe.chars().skip(excess).collect();
    let safe = safe.trim_start_matches(['.', '-']);
    if safe.is_empty() { "file".to_owned() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn names_are_reduced_to_one_safe_component() {
        for (name, safe) in [
            ("a.png", "a.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\b c.txt", "b-c.txt"),
            ("..", "file"),
            (".ssh", "ssh"),
            ("a\0b\n;$(x)", "a-b----x-"),
            ("bild-ö.png", "bild-ö.png"),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        let long = format!("{}.png", "x".repeat(500));
        assert!(safe_name(&long).len() <= NAME_CHARS_MAX && safe_name(&long).ends_with("png"));
    }

    #[test]
    fn files_are_stored_in_a_project_or_in_the_common_directory_and_never_outside() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = WorkDirs {
            projects: dir.path().join("projects"),
            uploads: dir.path().join("uploads"),
            roots: Vec::new(),
        };
        fs::create_dir_all(&dirs.projects).unwrap();
        let stored = UploadDir::create(&dirs, Some("p1")).unwrap().store("a.txt", b"one").unwrap();
        assert!(stored.path.starts_with("uploads/") && stored.path.ends_with("-a.txt"));
        let file = dirs.projects.join("p1").join(&stored.path);
        assert_eq!((fs::read(file).unwrap(), stored.size), (b"one".to_vec(), 3));
        let stored = UploadDir::create(&dirs, None).unwrap().store("../b.txt", b"").unwrap();
        assert!(Path::new(&stored.path).parent().unwrap().ends_with("uploads"), "{stored:?}");
        fs::create_dir_all(dirs.projects.join("p2")).unwrap();
        symlink(dir.path(), dirs.projects.join("p2/uploads")).unwrap();
        let error = UploadDir::create(&dirs, Some("p2")).unwrap_err();
        assert!(error.message.contains("leads outside"), "{error:?}");
        assert!(UploadDir::create(&dirs, Some("../x")).is_err());
    }
}
