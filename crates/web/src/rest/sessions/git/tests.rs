//! Changes of real repositories, among them a hostile one.

use super::*;
use std::process::Command as BlockingCommand;

/// Runs git as a user would, without the configuration of this machine.
fn git(dir: &Path, args: &[&str]) {
    let mut command = BlockingCommand::new("git");
    command.current_dir(dir).args(args).env("HOME", dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
    {
        command.env(name, "x");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with one commit, and changes since then.
fn changed_repository() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    write("kept", "1\n");
    write("edited", "1\n2\n");
    write("removed", "1\n");
    write(".gitignore", "ignored\n");
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "first"]);
    write("edited", "1\nzwei\n3\n");
    write("new ü", "1\n");
    write("ignored", "1\n");
    fs::remove_file(root.join("removed")).unwrap();
    dir
}

fn file(path: &str, status: FileStatus, lines: Option<(u64, u64)>) -> GitFile {
    let (additions, deletions) = lines.unzip();
    GitFile { path: path.to_owned(), status, additions, deletions }
}

#[tokio::test]
async fn changed_new_and_removed_files_are_listed_with_their_diffs() {
    let dir = changed_repository();
    let view = GitView::open(dir.path(), RepositoryScope::WorkTree).unwrap();
    let changes = view.read_changes().await.unwrap();
    assert_eq!(changes.branch.as_deref(), Some("main"));
    let expected = [
        file("edited", FileStatus::Modified, Some((2, 1))),
        file("new ü", FileStatus::Added, None),
        file("removed", FileStatus::Deleted, Some((0, 1))),
    ];
    assert_eq!(changes.files, expected);
    let diff = view.read_diff("edited").await.unwrap();
    assert!(diff.contains("\n-2\n+zwei\n+3\n"), "{diff}");
    assert!(view.read_diff("new ü").await.unwrap().ends_with("\n+1\n"));
    for path in ["", "../x", "/etc/passwd", "missing", "./edited"] {
        assert_eq!(view.read_diff(path).await, None, "{path}");
    }
    let other = tempfile::tempdir().unwrap();
    assert!(GitView::open(other.path(), RepositoryScope::Anywhere).is_none());
}

/// A home directory of Windows as WSL mounts it, and a linked work tree whose `.git` names a path with spaces.
#[tokio::test]
async fn work_trees_below_names_with_spaces_and_other_scripts_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("mnt/c/Users/Zoë O'Neil");
    let (main, linked) = (home.join("my project"), home.join("Проект \"2\""));
    fs::create_dir_all(main.join("src dir")).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    fs::write(main.join("src dir/größe.txt"), "1\n").unwrap();
    git(&main, &["add", "."]);
    git(&main, &["commit", "-q", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", "-b", "second", linked.to_str().unwrap()]);
    for root in [&main, &linked] {
        fs::write(root.join("src dir/größe.txt"), "2\n").unwrap();
        fs::write(root.join("new \"file\".txt"), "1\n").unwrap();
        let view = GitView::open(&root.join("src dir"), RepositoryScope::Anywhere).unwrap();
        let changes = view.read_changes().await.unwrap();
        let expected = [
            file("new \"file\".txt", FileStatus::Added, None),
            file("src dir/größe.txt", FileStatus::Modified, Some((1, 1))),
        ];
        assert_eq!(changes.files, expected, "{}", root.display());
        let diff = view.read_diff("src dir/größe.txt").await.unwrap();
        assert!(diff.contains("\n-1\n+2\n"), "{diff}");
        assert!(view.read_diff("new \"file\".txt").await.unwrap().ends_with("\n+1\n"));
    }
}

/// Git compares times in seconds. It reads files that are not older than the index, so a copy needs the same time.
#[tokio::test]
async fn change_of_the_same_size_in_the_second_of_the_commit_is_listed() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edited");
    git(dir.path(), &["init", "-q", "-b", "main"]);
    let second = || fs::metadata(&path).unwrap().ctime();
    let is_same_second = (0..20).any(|round| {
        fs::write(&path, format!("{round:02}\n")).unwrap();
        let before = second();
        git(dir.path(), &["add", "."]);
        git(dir.path(), &["commit", "-q", "-m", "x"]);
        fs::write(&path, "xx\n").unwrap();
        second() == before
    });
    assert!(is_same_second, "no commit was made within one second");
    let view = GitView::open(dir.path(), RepositoryScope::WorkTree).unwrap();
    let changes = view.read_changes().await.unwrap();
    assert_eq!(changes.files, [file("edited", FileStatus::Modified, Some((1, 1)))]);
}

#[tokio::test]
async fn programs_that_a_repository_names_are_not_run() {
    let dir = changed_repository();
    let marker = dir.path().join("ran");
    let program = format!("touch {} #", marker.display());
    for key in ["core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command"] {
        git(dir.path(), &["config", key, &program]);
    }
    for key in ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process"] {
        git(dir.path(), &["config", key, &program]);
    }
    let attributes = "* filter=evil diff=evil\n";
    fs::write(dir.path().join(".gitattributes"), attributes).unwrap();
    fs::write(dir.path().join(".git/info/attributes"), attributes).unwrap();
    let view = GitView::open(dir.path(), RepositoryScope::WorkTree).unwrap();
    let changes = view.read_changes().await.unwrap();
    assert!(changes.files.iter().any(|it| it.path == "edited"), "{changes:?}");
    assert!(view.read_diff("edited").await.unwrap().contains("+zwei"));
    assert!(!marker.exists(), "git ran a program of the repository");
}

#[cfg(unix)]
#[tokio::test]
async fn link_to_a_file_elsewhere_is_not_read() {
    let dir = changed_repository();
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "secret").unwrap();
    std::os::unix::fs::symlink(secret.path(), dir.path().join("link")).unwrap();
    let view = GitView::open(dir.path(), RepositoryScope::WorkTree).unwrap();
    assert_eq!(view.read_diff("link").await, None);
}
