//! Finds the git repository of a directory by reading its files; git itself is not run.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The size of the files that are read: `HEAD`, references, links to other directories.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A repository. All paths are absolute and have no links.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitRepository {
    /// The directory with the files.
    pub(super) work_tree: PathBuf,
    pub(super) objects: PathBuf,
    pub(super) index: PathBuf,
    /// The commit that is checked out; `None` before the first commit.
    pub(super) commit: Option<String>,
    pub(super) branch: Option<String>,
}

/// Where the data of a repository may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rest::sessions) enum RepositoryScope {
    /// Inside the work tree: a repository of a tenant must not refer to the data of another tenant.
    WorkTree,
    Anywhere,
}

impl GitRepository {
    /// The repository that a directory belongs to, if it belongs to one that can be read.
    pub(super) fn find(directory: &Path, scope: RepositoryScope) -> Option<GitRepository> {
        let directory = directory.canonicalize().ok()?;
        let work_tree = directory.ancestors().find(|it| it.join(".git").exists())?.to_owned();
        let git_dir = find_git_dir(&work_tree)?;
        let common_dir = match read_line(&git_dir.join("commondir")) {
            Some(path) => git_dir.join(path).canonicalize().ok()?,
            None => git_dir.clone(),
        };
        let objects = common_dir.join("objects").canonicalize().ok()?;
        let is_inside = [&git_dir, &objects].iter().all(|it| it.starts_with(&work_tree));
        // Alternates refer to objects of other repositories.
        let has_alternates = objects.join("info/alternates").exists();
        if scope == RepositoryScope::WorkTree && (!is_inside || has_alternates) {
            return None;
        }
        let head = read_line(&git_dir.join("HEAD"))?;
        let (branch, commit) = match head.strip_prefix("ref: ") {
            Some(name) => {
                let commit = find_reference(&[&git_dir, &common_dir], name);
                (name.strip_prefix("refs/heads/").map(str::to_owned), commit)
            }
            None => (None, Some(head).filter(|it| is_object_name(it))),
        };
        let index = git_dir.join("index");
        Some(GitRepository { work_tree, objects, index, commit, branch })
    }
}

/// `.git`, or the directory that it names if it is a file, as in a linked work tree.
fn find_git_dir(work_tree: &Path) -> Option<PathBuf> {
    let dot_git = work_tree.join(".git");
    if dot_git.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let named = read_line(&dot_git)?;
    work_tree.join(named.strip_prefix("gitdir: ")?).canonicalize().ok()
}

/// The commit of a reference.
fn find_reference(dirs: &[&PathBuf], name: &str) -> Option<String> {
    let is_plain = |it: &str| !it.is_empty() && it != "." && it != "..";
    if !name.starts_with("refs/") || !name.split('/').all(is_plain) {
        return None;
    }
    let loose = dirs.iter().find_map(|it| read_line(&it.join(name)));
    let packed = || {
        let packed = dirs.iter().find_map(|it| read_text(&it.join("packed-refs")).ok())?;
        let mut lines = packed.lines().filter_map(|it| it.split_once(' '));
        lines.find(|(_, it)| *it == name).map(|(commit, _)| commit.to_owned())
    };
    loose.or_else(packed).filter(|it| is_object_name(it))
}

fn is_object_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit())
}

fn read_line(path: &Path) -> Option<String> {
    let text = read_text(path).ok()?;
    text.lines().next().map(|it| it.trim_end().to_owned())
}

fn read_text(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || FILE_BYTES_MAX < metadata.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn repository(dir: &Path) {
        write(&dir.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&dir.join(".git/refs/heads/main"), &format!("{COMMIT}\n"));
        fs::create_dir_all(dir.join(".git/objects/info")).unwrap();
        fs::create_dir_all(dir.join("src/deep")).unwrap();
    }

    #[test]
    fn repository_is_found_from_a_directory_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(GitRepository::find(&root, RepositoryScope::WorkTree), None);
        repository(&root);
        let found = GitRepository::find(&root.join("src/deep"), RepositoryScope::WorkTree).unwrap();
        assert_eq!((found.work_tree, found.branch.as_deref()), (root.clone(), Some("main")));
        assert_eq!(found.commit.as_deref(), Some(COMMIT));
        write(&root.join(".git/refs/heads/main"), "../../secret");
        write(&root.join(".git/packed-refs"), &format!("# x\n{COMMIT} refs/heads/other\n"));
        write(&root.join(".git/HEAD"), "ref: refs/heads/other");
        let packed = GitRepository::find(&root, RepositoryScope::WorkTree).unwrap();
        assert_eq!(packed.commit.as_deref(), Some(COMMIT));
        write(&root.join(".git/HEAD"), "ref: refs/../../x");
        assert_eq!(GitRepository::find(&root, RepositoryScope::WorkTree).unwrap().commit, None);
    }

    #[test]
    fn repository_of_a_tenant_has_no_data_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (theirs, ours) = (root.join("theirs"), root.join("ours"));
        repository(&theirs);
        write(&ours.join(".git"), "gitdir: ../theirs/.git");
        let find = |scope| GitRepository::find(&ours, scope).is_some();
        assert!(find(RepositoryScope::Anywhere) && !find(RepositoryScope::WorkTree));
        fs::remove_file(ours.join(".git")).unwrap();
        repository(&ours);
        assert!(find(RepositoryScope::WorkTree));
        write(&ours.join(".git/objects/info/alternates"), "/elsewhere");
        assert!(!find(RepositoryScope::WorkTree));
    }
}
