//! Files of the session: accessed through the client where it supports this, because it has the
//! unsaved changes; otherwise on disk. In both cases only inside the session's directories.

use super::SessionContext;
use agent_client_protocol::v1::schema::{
    ReadTextFileRequest, ToolCallLocation, WriteTextFileRequest,
};
use jackfield_protocol::Fault;
use jackfield_workspace_fs::{ConfinedPath, ReadFileRequest, RemoveFileRequest, WriteFileRequest};
use std::path::{Component, Path, PathBuf};

/// A path that a model named, resolved inside the session's directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// Absolute, with the symbolic links of the given name, because the client uses this form.
    pub(super) path: PathBuf,
    /// Without symbolic links.
    pub(super) real: PathBuf,
    /// For the user and the model: relative to the working directory if possible.
    pub(super) display: String,
    pub(super) exists: bool,
    pub(super) is_dir: bool,
}

impl ResolvedPath {
    /// Resolves a path. Relative ones are below the working directory.
    pub(super) async fn resolve(
        name: &str,
        context: &SessionContext,
    ) -> Result<ResolvedPath, String> {
        let (name, dirs) = (name.to_owned(), context.dirs.clone());
        run_blocking(move || resolve_path(&name, &dirs)).await
    }

    /// Resolves a path that must exist.
    pub(super) async fn resolve_existing(
        name: &str,
        context: &SessionContext,
    ) -> Result<ResolvedPath, String> {
        let path = ResolvedPath::resolve(name, context).await?;
        if path.exists { Ok(path) } else { Err(file_not_found(&path.display)) }
    }

    /// Resolves a path that must not be a directory.
    pub(super) async fn resolve_file(
        name: &str,
        context: &SessionContext,
    ) -> Result<ResolvedPath, String> {
        let path = ResolvedPath::resolve(name, context).await?;
        if path.is_dir {
            let display = &path.display;
            return Err(format!("`{display}` is a directory. Use `list` to see what is in it."));
        }
        Ok(path)
    }

    pub(super) fn to_location(&self, line: Option<u32>) -> ToolCallLocation {
        ToolCallLocation::new(self.path.clone()).line(line)
    }

    /// Reads lines of the file, or all of it.
    pub(super) async fn read(
        &self,
        context: &SessionContext,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        let text = if context.client_io.reads_files {
            let request = ReadTextFileRequest::new(context.session_id.clone(), self.path.clone());
            let request = request.line(line).limit(limit);
            let response = context.client.send_request(request).block_task().await;
            let response = response
                .map_err(|error| format!("The client cannot read `{}`: {error}", self.display))?;
            response.content
        } else {
            let (line, limit) = (line.map(u64::from), limit.map(u64::from));
            let request = ReadFileRequest { path: self.path.clone(), line, limit };
            let dirs = context.dirs.clone();
            let read = run_blocking(move || request.execute(&dirs)).await;
            read.map_err(|fault| describe_fault(&fault))?
        };
        self.check_is_text(text)
    }

    /// Reads the whole file. Returns `None` if it does not exist.
    pub(super) async fn read_if_exists(
        &self,
        context: &SessionContext,
    ) -> Result<Option<String>, String> {
        let current = ResolvedPath::resolve(&self.path.to_string_lossy(), context).await?;
        if current.exists { self.read(context, None, None).await.map(Some) } else { Ok(None) }
    }

    pub(super) async fn write(&self, context: &SessionContext, text: &str) -> Result<(), String> {
        let (path, content) = (self.path.clone(), text.to_owned());
        if context.client_io.writes_files {
            let request = WriteTextFileRequest::new(context.session_id.clone(), path, content);
            let response = context.client.send_request(request).block_task().await;
            return response
                .map(|_| ())
                .map_err(|error| format!("The client cannot write `{}`: {error}", self.display));
        }
        let dirs = context.dirs.clone();
        let written = run_blocking(move || WriteFileRequest { path, content }.execute(&dirs)).await;
        written.map_err(|fault| describe_fault(&fault))
    }

    /// Removes the file on disk, because ACP has no request for this.
    pub(super) async fn remove(&self, context: &SessionContext) -> Result<(), String> {
        let (path, dirs) = (self.path.clone(), context.dirs.clone());
        let removed = run_blocking(move || RemoveFileRequest { path }.execute(&dirs)).await;
        removed.map_err(|fault| describe_fault(&fault))
    }

    fn check_is_text(&self, text: String) -> Result<String, String> {
        if text.contains('\0') {
            return Err(format!("`{}` is a binary file: it contains NUL bytes.", self.display));
        }
        Ok(text)
    }
}

/// Runs blocking work on a thread that may wait for the disk.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    tokio::task::spawn_blocking(work).await.expect("the task is never aborted and does not panic")
}

/// Formats a path relative to the working directory if possible.
pub(super) fn display_path(path: &Path, dirs: &[PathBuf]) -> String {
    let cwd = dirs.first();
    let real = cwd.and_then(|it| std::fs::canonicalize(it).ok());
    let relative = cwd.into_iter().chain(&real).find_map(|it| path.strip_prefix(it).ok());
    match relative.unwrap_or(path) {
        it if it.as_os_str().is_empty() => ".".to_owned(),
        it => it.display().to_string(),
    }
}

pub(super) fn file_not_found(display: &str) -> String {
    format!("There is no `{display}`. Use `list` or `glob` to see what there is.")
}

fn resolve_path(name: &str, dirs: &[PathBuf]) -> Result<ResolvedPath, String> {
    let name = name.trim();
    let name = Path::new(name.strip_prefix("file://").unwrap_or(name));
    let Some(cwd) = dirs.first() else {
        return Err("The session has no directory, so there are no files.".to_owned());
    };
    // Collecting the components removes `.`, as the client does.
    let path: PathBuf = cwd.join(name).components().collect();
    let place = ConfinedPath::resolve(&path, dirs).map_err(|fault| describe_fault(&fault))?;
    let real = place.missing_components.iter().fold(place.path(), |it, name| it.join(name));
    let has_parent_dir = path.components().any(|it| it == Component::ParentDir);
    let path = if has_parent_dir { real.clone() } else { path };
    let display = display_path(&path, dirs);
    let (exists, is_dir) = (place.missing_components.is_empty(), real.is_dir());
    Ok(ResolvedPath { path, real, display, exists, is_dir })
}

fn describe_fault(fault: &Fault) -> String {
    match fault {
        Fault::InvalidParams { why } | Fault::Internal { why } => format!("{why}."),
        Fault::FileNotFound { path } => file_not_found(path),
        fault => format!("{fault}."),
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, files::ResolvedPath, test_session::with_test_session};
    use std::fs;

    const FILE_ACCESS: IoCapabilities =
        IoCapabilities { reads_files: true, writes_files: true, has_terminals: false };

    #[tokio::test]
    async fn path_outside_is_refused_with_and_without_client_access() {
        for client_io in [IoCapabilities::default(), FILE_ACCESS] {
            with_test_session(client_io, async |session| {
                let outside = tempfile::tempdir().unwrap();
                let link = session.at("out");
                std::os::unix::fs::symlink(outside.path(), &link).unwrap();
                for name in ["../x", "out/x", "/etc/passwd", "a/../../x"] {
                    let error = ResolvedPath::resolve(name, &session.context).await.unwrap_err();
                    let is_outside = error.contains("outside the session's directories");
                    assert!(is_outside || error.contains("has `..` after"), "{name}: {error}");
                }
                assert!(session.client.requests().is_empty());
            })
            .await;
        }
    }

    #[tokio::test]
    async fn path_is_displayed_relative_to_the_working_directory() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::create_dir(session.at("a")).unwrap();
            fs::write(session.at("a/b"), "text").unwrap();
            let whole = session.at("a/b").to_string_lossy().into_owned();
            for name in ["a/b", "./a/b", "a/../a/b", &whole, &format!("file://{whole}")] {
                let path = ResolvedPath::resolve(name, &session.context).await.unwrap();
                assert_eq!((path.display.as_str(), path.exists), ("a/b", true), "{name}");
            }
            assert_eq!(ResolvedPath::resolve(".", &session.context).await.unwrap().display, ".");
            assert!(!ResolvedPath::resolve("a/c/d", &session.context).await.unwrap().exists);
        })
        .await;
    }

    #[tokio::test]
    async fn only_supported_operations_are_requested_from_the_client() {
        for (client_io, requests) in [
            (IoCapabilities::default(), vec![]),
            (IoCapabilities { reads_files: true, ..IoCapabilities::default() }, vec!["read a"]),
            (IoCapabilities { writes_files: true, ..IoCapabilities::default() }, vec!["write a"]),
            (FILE_ACCESS, vec!["write a", "read a"]),
        ] {
            with_test_session(client_io, async |session| {
                let path = ResolvedPath::resolve("a", &session.context).await.unwrap();
                path.write(&session.context, "text\n").await.unwrap();
                assert_eq!(path.read(&session.context, None, None).await.unwrap(), "text\n");
                assert_eq!(fs::read_to_string(session.at("a")).unwrap(), "text\n");
                assert_eq!(session.client.requests(), requests);
            })
            .await;
        }
    }
}
