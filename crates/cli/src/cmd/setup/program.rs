//! The command that an editor starts. An editor that is started from a menu or the Dock does not have the PATH of a shell,
//! so a name alone works only in the folders that every session has.

use crate::report::CommandError;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

const NAME: &str = "jackfield";
/// Folders on the PATH of every desktop session, on Linux and macOS. `/usr/local/bin` is not one of them on macOS.
const SESSION_FOLDERS: &[&str] = &["/usr/bin", "/bin"];
/// The folder in which `npx` keeps packages until it removes them.
const NPX_CACHE: &str = "_npx";

/// The name if every desktop session finds it, or the full path of this program: that on PATH, which an upgrade keeps, or
/// else the path of the file itself.
pub(super) fn choose_program() -> Result<String, CommandError> {
    let failed =
        |source| CommandError::local("cannot find the path of the jackfield program", source);
    let running = env::current_exe().map_err(failed)?;
    let folders: Vec<PathBuf> =
        env::var_os("PATH").map(|it| env::split_paths(&it).collect()).unwrap_or_default();
    let chosen = choose_path(&running, SESSION_FOLDERS, &folders);
    chosen.into_os_string().into_string().map_err(|path| {
        CommandError::usage(
            format!("the path of this program is not UTF-8: `{}`", path.display()),
            "install Jackfield in another folder",
        )
    })
}

fn choose_path(running: &Path, session_folders: &[&str], path: &[PathBuf]) -> PathBuf {
    let running = fs::canonicalize(running).unwrap_or_else(|_| running.to_owned());
    let is_running = |it: &PathBuf| fs::canonicalize(it).is_ok_and(|it| it == running);
    if session_folders.iter().any(|it| is_running(&Path::new(it).join(NAME))) {
        return PathBuf::from(NAME);
    }
    let on_path = path.iter().filter(|it| it.is_absolute()).map(|it| it.join(NAME));
    on_path.into_iter().find(is_running).unwrap_or(running)
}

/// Whether the program may be removed without the user's doing.
pub(super) fn is_temporary(program: &str) -> bool {
    Path::new(program).components().any(|it| it.as_os_str() == NPX_CACHE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn name_is_used_only_in_a_folder_that_every_session_has() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let folder = |name: &str| {
            fs::create_dir_all(root.join(name)).unwrap();
            root.join(name)
        };
        let (cellar, prefix, session) = (folder("cellar/1.0"), folder("prefix"), folder("session"));
        let running = cellar.join(NAME);
        fs::write(&running, "").unwrap();
        let session_folders = [session.to_str().unwrap()];
        let choose = || choose_path(&running, &session_folders, &[folder("other"), prefix.clone()]);
        assert_eq!(choose(), running);
        symlink(&running, prefix.join(NAME)).unwrap();
        assert_eq!(choose(), prefix.join(NAME), "an upgrade changes the target, not the link");
        symlink(&running, session.join(NAME)).unwrap();
        assert_eq!(choose(), Path::new(NAME));
    }

    #[test]
    fn program_in_the_cache_of_npx_is_temporary() {
        assert!(is_temporary("/home/u/.npm/_npx/1f/node_modules/j/bin/jackfield"));
        assert!(!is_temporary("/home/u/.cargo/bin/jackfield"));
    }
}
