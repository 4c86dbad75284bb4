//! A terminal of tmux with a shell in it, on a server of its own.

use jackfield_e2e::{Home, wait_for};
use std::{
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

/// How long the screen may take to show something.
const SCREEN_MAX: Duration = Duration::from_secs(20);
/// The prompt of the shell.
const PROMPT: &str = "shell>";

/// A window of fixed size. The server is killed at the end.
pub(super) struct TerminalPane<'a> {
    home: &'a Home,
    socket: PathBuf,
}

impl<'a> TerminalPane<'a> {
    /// Starts a shell in the home, in the environment of its commands.
    pub(super) fn start(home: &'a Home, width: u16, height: u16) -> TerminalPane<'a> {
        let pane = TerminalPane { home, socket: home.path().join("tmux.sock") };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("exec env TERM=tmux-256color PS1='{PROMPT} ' sh -i");
        pane.tmux(&["new-session", "-d", "-s", "t", "-x", &width, "-y", &height, &shell]);
        pane.tmux(&["set", "-g", "set-clipboard", "on"]);
        pane.wait_for(PROMPT);
        pane
    }

    /// Runs tmux and returns its output.
    pub(super) fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(args);
        command.current_dir(self.home.path()).env_clear();
        for (name, value) in self.home.command(&[]).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let Output { status, stdout, stderr } = command.output().expect("tmux is installed");
        let errors = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "tmux {args:?}: {errors}");
        String::from_utf8_lossy(&stdout).into_owned()
    }

    /// Presses keys by their names in tmux.
    pub(super) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
    }

    /// Types text.
    pub(super) fn enter_text(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "t", "-l", "--", text]);
    }

    /// Types a command of the shell.
    pub(super) fn run_shell(&self, command: &str) {
        self.enter_text(command);
        self.press(&["Enter"]);
    }

    /// Starts the interface.
    pub(super) fn start_interface(&self, args: &str) {
        let program = jackfield_e2e::home::binary("jackfield");
        self.run_shell(&format!("{} {args}", program.display()));
    }

    /// The text on the screen.
    pub(super) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "t"])
    }

    /// The text on the screen and in the scrollback; lines that were wrapped are joined.
    pub(super) fn history(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", "t"])
    }

    /// Changes the size of the terminal.
    pub(super) fn resize(&self, width: usize, height: usize) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-t", "t", "-x", &width, "-y", &height]);
    }

    /// A value of the pane, such as `alternate_on`.
    pub(super) fn value(&self, name: &str) -> String {
        let format = format!("#{{{name}}}");
        self.tmux(&["display-message", "-p", "-t", "t", &format]).trim_end().to_owned()
    }

    pub(super) fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text:?} on the screen"), |screen| screen.contains(text));
    }

    /// Waits until the screen is as wanted.
    pub(super) fn wait_until(&self, what: &str, is_wanted: impl Fn(&str) -> bool) {
        let mut screen = String::new();
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(what, SCREEN_MAX, || {
                screen = self.screen();
                is_wanted(&screen).then_some(())
            });
        }));
        assert!(waited.is_ok(), "no {what}; the screen is:\n{screen}");
    }

    /// Waits until the shell has the terminal again, with the modes that it had.
    pub(super) fn wait_for_shell(&self) {
        self.wait_for_prompt();
        self.assert_untouched();
    }

    /// Keys that are typed before this may be read by the program that ends.
    pub(super) fn wait_for_prompt(&self) {
        self.wait_until("prompt of the shell in the last line", |screen| {
            screen.trim_end().lines().last().is_some_and(|it| it.trim_end().ends_with(PROMPT))
        });
    }

    /// The terminal has no mode of the interface.
    pub(super) fn assert_untouched(&self) {
        for (mode, expected) in
            [("alternate_on", "0"), ("cursor_flag", "1"), ("mouse_any_flag", "0")]
        {
            assert_eq!(self.value(mode), expected, "{mode}");
        }
    }

    /// Keeps the screen as text and with its styles, if `TUI_CAPTURES` names a folder.
    pub(super) fn capture(&self, name: &str) {
        let Some(folder) = std::env::var_os("TUI_CAPTURES").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), self.screen()).unwrap();
        let styled = self.tmux(&["capture-pane", "-p", "-e", "-t", "t"]);
        std::fs::write(folder.join(format!("{name}.ansi")), styled).unwrap();
    }
}

impl Drop for TerminalPane<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        // It may be gone after a failed test.
        let _ended = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
