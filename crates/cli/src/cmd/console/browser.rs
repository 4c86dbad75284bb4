//! Opens a link in the browser of the desktop.

use jackfield_private_files as private_files;
use std::{
    env, io,
    path::Path,
    process::{Command, Stdio},
};

/// The programs that open a file with the user's browser.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// Whether a browser on this machine would not be in front of the user.
pub(super) fn is_remote_shell() -> bool {
    env::var_os("SSH_CONNECTION").is_some()
}

/// Opens a private page that leads to the link, because other users can read the arguments of
/// processes. Returns the program that opens it.
pub(super) fn open_link(runtime: &Path, link: &str) -> io::Result<&'static str> {
    let page = runtime.join("console.html");
    let text = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Jackfield</title>\n\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\">\n<a href=\"{link}\">Open the console</a>\n"
    );
    private_files::replace_file(&page, text.as_bytes())?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for program in OPENERS {
        let null = Stdio::null;
        let mut command = Command::new(program);
        command.arg(&page).stdin(null()).stdout(null()).stderr(null());
        match command.spawn() {
            Ok(_runs_on) => return Ok(program),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn link_is_passed_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        // Whether a program is found does not matter here.
        let _opened = open_link(dir.path(), "http://127.0.0.1:1/console/login#code=x");
        let page = dir.path().join("console.html");
        let mode = page.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains("content=\"0;url=http://127.0.0.1:1/console/login#code=x\""));
    }
}
