//! What changed in a git repository since its last commit, read with the program `git`.
//!
//! The repository is hostile: its configuration can name programs that git runs, such as filters and monitors. So git
//! gets a directory of its own, without configuration, that refers to the objects of the repository and has a copy of
//! its index. Attributes in the work tree then name filters that do not exist. Submodules, which have a configuration
//! of their own, are ignored.

mod repository;

pub(super) use repository::RepositoryScope;

use jackfield_views::FileStatus;
use repository::GitRepository;
use serde::Serialize;
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{io::AsyncReadExt as _, process::Command};
use utoipa::ToSchema;

/// How long git may run: a large work tree on a slow disk takes seconds.
const RUN_TIMEOUT: Duration = Duration::from_secs(10);
const OUTPUT_BYTES_MAX: u64 = 1024 * 1024;
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FILES_MAX: usize = 2000;
/// The size of a new file that is shown.
const NEW_FILE_BYTES_MAX: u64 = 256 * 1024;

/// What changed since the last commit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GitChanges {
    /// `null` if a commit is checked out and no branch.
    branch: Option<String>,
    files: Vec<GitFile>,
}

/// A file that differs from the last commit.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct GitFile {
    /// Relative to the work tree.
    path: String,
    status: FileStatus,
    /// `null` for binary and new files.
    additions: Option<u64>,
    deletions: Option<u64>,
}

/// A repository with a directory for git.
pub(super) struct GitView {
    repository: GitRepository,
    git_dir: TempDir,
}

impl GitView {
    /// The repository of a directory, if it can be read.
    pub(super) fn open(directory: &Path, scope: RepositoryScope) -> Option<GitView> {
        let repository = GitRepository::find(directory, scope)?;
        let git_dir = create_git_dir(&repository).ok()?;
        Some(GitView { repository, git_dir })
    }

    /// The files that differ from the last commit, and the new ones.
    pub(super) async fn read_changes(&self) -> Option<GitChanges> {
        let mut files = Vec::new();
        if let Some(commit) = &self.repository.commit {
            let args = ["diff", "--raw", "--numstat", "-z", "--no-renames", commit];
            files = parse_changes(&self.run(&args, &[]).await?);
        }
        let new = self.run(&["ls-files", "--others", "--exclude-standard", "-z"], &[]).await?;
        let new = new.split('\0').filter(|it| !it.is_empty()).map(|path| GitFile {
            path: path.to_owned(),
            status: FileStatus::Added,
            additions: None,
            deletions: None,
        });
        files.extend(new);
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.truncate(FILES_MAX);
        Some(GitChanges { branch: self.repository.branch.clone(), files })
    }

    /// The diff of one file against the last commit.
    pub(super) async fn read_diff(&self, path: &str) -> Option<String> {
        let is_plain = |it: Component<'_>| matches!(it, Component::Normal(_));
        if path.is_empty() || !Path::new(path).components().all(is_plain) {
            return None;
        }
        if let Some(commit) = &self.repository.commit {
            let diff = self.run(&["diff", "--no-renames", commit], &[path]).await?;
            if !diff.is_empty() {
                return Some(diff);
            }
        }
        let file = self.repository.work_tree.join(path);
        Some(jackfield_views::render_diff(path, None, &read_new_file(&self.repository, &file)?))
    }

    /// Runs git with a subcommand and paths. `None` if it fails, takes too long or is not installed. Output beyond the
    /// limit is left out.
    async fn run(&self, args: &[&str], paths: &[&str]) -> Option<String> {
        let mut command = Command::new("git");
        command.env_clear().envs(std::env::var_os("PATH").map(|it| ("PATH", it)));
        let git_dir = self.git_dir.path();
        let variables: [(&str, &Path); 5] = [
            ("HOME", git_dir),
            ("GIT_DIR", git_dir),
            ("GIT_WORK_TREE", &self.repository.work_tree),
            ("GIT_CONFIG_GLOBAL", Path::new("/dev/null")),
            ("GIT_CONFIG_SYSTEM", Path::new("/dev/null")),
        ];
        command.envs(variables).env("LC_ALL", "C").env("GIT_LITERAL_PATHSPECS", "1");
        let settings = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false"];
        command.arg("--no-optional-locks").args(settings.iter().flat_map(|it| ["-c", it]));
        let (subcommand, rest) = args.split_first()?;
        command.arg(subcommand);
        if *subcommand == "diff" {
            let safe = ["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"];
            command.args(safe);
        }
        command.args(rest).arg("--").args(paths).current_dir(&self.repository.work_tree);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().ok()?;
        let mut output = Vec::new();
        let read = async {
            let stdout = child.stdout.take()?;
            stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut output).await.ok()?;
            let is_whole = (output.len() as u64) < OUTPUT_BYTES_MAX;
            (!is_whole || child.wait().await.ok()?.success()).then_some(())
        };
        tokio::time::timeout(RUN_TIMEOUT, read).await.ok()??;
        Some(String::from_utf8_lossy(&output).into_owned())
    }
}

/// A directory as git expects it, without configuration, hooks and attributes.
fn create_git_dir(repository: &GitRepository) -> io::Result<TempDir> {
    let dir = tempfile::tempdir()?;
    let path = dir.path();
    fs::create_dir_all(path.join("objects/info"))?;
    fs::create_dir(path.join("refs"))?;
    fs::write(path.join("HEAD"), "ref: refs/heads/none\n")?;
    let mut objects = repository.objects.as_os_str().as_encoded_bytes().to_vec();
    objects.push(b'\n');
    fs::write(path.join("objects/info/alternates"), objects)?;
    if repository.commit.as_ref().is_some_and(|it| it.len() == 64) {
        let config = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n";
        fs::write(path.join("config"), config)?;
    }
    if let Ok(index) = fs::symlink_metadata(&repository.index)
        && index.is_file()
        && index.len() <= INDEX_BYTES_MAX
    {
        let copy = path.join("index");
        fs::copy(&repository.index, &copy)?;
        // Git reads the content of files that are as old as the index, since they may have changed unnoticed.
        fs::File::options().write(true).open(copy)?.set_modified(index.modified()?)?;
    }
    Ok(dir)
}

/// The text of a file that git does not know. A link is not followed.
fn read_new_file(repository: &GitRepository, file: &PathBuf) -> Option<String> {
    let metadata = fs::symlink_metadata(file).ok()?;
    let is_inside = file.canonicalize().ok()?.starts_with(&repository.work_tree);
    if !metadata.is_file() || !is_inside || NEW_FILE_BYTES_MAX < metadata.len() {
        return None;
    }
    fs::read_to_string(file).ok()
}

/// Reads the output of `git diff --raw --numstat -z`.
fn parse_changes(output: &str) -> Vec<GitFile> {
    let mut files: Vec<GitFile> = Vec::new();
    let mut parts = output.split('\0');
    while let Some(part) = parts.next() {
        if let Some(raw) = part.strip_prefix(':') {
            let status = match raw.chars().last() {
                Some('A') => FileStatus::Added,
                Some('D') => FileStatus::Deleted,
                _ => FileStatus::Modified,
            };
            let Some(path) = parts.next() else { break };
            let path = path.to_owned();
            files.push(GitFile { path, status, additions: None, deletions: None });
        } else if let Some((additions, rest)) = part.split_once('\t')
            && let Some((deletions, path)) = rest.split_once('\t')
            && let Some(file) = files.iter_mut().find(|it| it.path == path)
        {
            (file.additions, file.deletions) = (additions.parse().ok(), deletions.parse().ok());
        }
    }
    files
}

#[cfg(test)]
mod tests;
