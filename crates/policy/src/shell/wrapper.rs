//! Wrappers: programs that run the command in their arguments.

use super::{
    ShellWord, WordKind,
    program::{ProgramRole, is_assignment},
};

/// A program that runs the command in its arguments.
struct WrapperProgram {
    name: &'static str,
    /// The number of its own operands between its options and the command.
    operands: usize,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options whose value is the next word, or follows a `=`.
    valued: &'static [&'static str],
}

const fn wrapper(
    name: &'static str,
    operands: usize,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
) -> WrapperProgram {
    WrapperProgram { name, operands, flags, valued }
}

/// An option that is not listed makes the line opaque, because it may take a value.
const WRAPPERS: &[WrapperProgram] = &[
    wrapper("env", 0, &["-i", "-", "--ignore-environment"], &["-u", "--unset", "-C", "--chdir"]),
    wrapper("genv", 0, &["-i", "-", "--ignore-environment"], &["-u", "--unset", "-C", "--chdir"]),
    wrapper("nohup", 0, &[], &[]),
    wrapper("time", 0, &["-p", "-v"], &[]),
    wrapper("gtime", 0, &["-p", "-v"], &[]),
    wrapper("timeout", 1, &["--foreground", "--preserve-status", "-v"], &["-s", "-k"]),
    wrapper("gtimeout", 1, &["--foreground"], &["-s", "-k"]),
    wrapper("nice", 0, &[], &["-n", "--adjustment"]),
    wrapper("ionice", 0, &["-t"], &["-c", "-n", "--class", "--classdata"]),
    wrapper("stdbuf", 0, &["-oL", "-o0", "-eL", "-e0", "-i0"], &["-o", "-e", "-i"]),
    wrapper("setsid", 0, &["-f", "-w", "-c"], &[]),
    wrapper("sudo", 0, &["-n", "-E", "-H", "-S", "-b", "-k"], &["-u", "-g"]),
    wrapper("doas", 0, &["-n"], &["-u"]),
    wrapper("xargs", 0, &["-0", "-r", "-t", "-x"], &["-n", "-P", "-I", "-L", "-d", "-s"]),
    wrapper("exec", 0, &["-c", "-l"], &["-a"]),
    wrapper("command", 0, &["-p", "-v", "-V"], &[]),
    wrapper("builtin", 0, &[], &[]),
    wrapper("noglob", 0, &[], &[]),
    wrapper("nocorrect", 0, &[], &[]),
    wrapper("chroot", 1, &[], &["--userspec", "--groups"]),
    wrapper("flock", 1, &["-n", "-x", "-s", "-e", "-o"], &["-w", "-E"]),
    wrapper("strace", 0, &["-f"], &["-e", "-p"]),
    wrapper("ltrace", 0, &["-f"], &["-e", "-p"]),
    wrapper("watch", 0, &["-d", "-t"], &["-n"]),
    wrapper("parallel", 0, &["-0", "-k"], &["-j"]),
    wrapper("ssh", 1, &["-t", "-T", "-q"], &["-p", "-i", "-l"]),
    wrapper("busybox", 0, &[], &[]),
    wrapper("toybox", 0, &[], &[]),
    wrapper("npx", 0, &["-y", "--yes", "--no-install", "-q"], &[]),
    wrapper("bunx", 0, &[], &[]),
    wrapper("pnpx", 0, &[], &[]),
    wrapper("uvx", 0, &[], &[]),
    wrapper("unshare", 0, &["-r", "-n", "-m", "-u", "-i", "-p", "-U", "-f"], &[]),
    wrapper("nsenter", 0, &["-a", "-m", "-u", "-i", "-n", "-p", "-U"], &["-t", "--target"]),
    wrapper("su", 0, &[], &[]),
    wrapper("runuser", 0, &[], &["-u"]),
    wrapper("pkexec", 0, &[], &["--user"]),
    wrapper("gosu", 1, &[], &[]),
    wrapper("su-exec", 1, &[], &[]),
    wrapper("setpriv", 0, &["--no-new-privs", "--clear-groups"], &["--reuid", "--regid"]),
    wrapper("prlimit", 0, &[], &["--nofile", "--nproc", "--as", "--cpu", "--core", "--fsize"]),
    wrapper("taskset", 1, &["-a", "-c", "--cpu-list"], &[]),
    wrapper("chrt", 1, &["-b", "-f", "-i", "-o", "-r", "-R"], &[]),
    wrapper("numactl", 0, &["-l"], &["-N", "-m", "-C", "--cpunodebind", "--membind"]),
    wrapper("setarch", 1, &["-R"], &[]),
    wrapper("linux32", 0, &[], &[]),
    wrapper("linux64", 0, &[], &[]),
    wrapper("choom", 0, &[], &["-n"]),
    wrapper("cpulimit", 0, &["-q", "-z"], &["-l"]),
    wrapper("caffeinate", 0, &["-i", "-d", "-s"], &[]),
    wrapper("fakeroot", 0, &[], &[]),
    wrapper("eatmydata", 0, &[], &[]),
    wrapper("unbuffer", 0, &["-p"], &[]),
    wrapper("rlwrap", 0, &[], &[]),
    wrapper("torsocks", 0, &[], &[]),
    wrapper("proxychains", 0, &["-q"], &[]),
    wrapper("proxychains4", 0, &["-q"], &[]),
    wrapper("faketime", 1, &[], &[]),
    wrapper("tini", 0, &["-s", "-g", "--"], &[]),
    wrapper("dumb-init", 0, &["-c", "--"], &[]),
    wrapper("valgrind", 0, &[], &[]),
    wrapper("xvfb-run", 0, &["-a"], &[]),
    wrapper("dbus-run-session", 0, &[], &[]),
    wrapper("arch", 0, &["-arm64", "-x86_64"], &[]),
];

/// Programs that run a command of their arguments in ways that are not supported here.
const OPAQUE_WRAPPERS: &[&str] = &[
    "at",
    "batch",
    "bwrap",
    "capsh",
    "cgexec",
    "chpst",
    "crontab",
    "daemonize",
    "direnv",
    "distrobox",
    "entr",
    "expect",
    "firejail",
    "hyperfine",
    "lxc",
    "machinectl",
    "nix-shell",
    "nodemon",
    "osascript",
    "perf",
    "proot",
    "run-parts",
    "screen",
    "script",
    "scriptreplay",
    "setuidgid",
    "start-stop-daemon",
    "systemd-run",
    "tmux",
    "toolbox",
    "vagrant",
    "watchexec",
    "wsl",
    "xdotool",
    "xterm",
    "zellij",
];

/// Whether a program of this name runs other programs.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|it| it.name == name) || OPAQUE_WRAPPERS.contains(&name)
}

/// The role of a wrapper; `None` if the program is not a wrapper.
pub(super) fn classify_wrapper(words: &[ShellWord], at: usize, name: &str) -> Option<ProgramRole> {
    if OPAQUE_WRAPPERS.contains(&name) && at + 1 < words.len() {
        return Some(ProgramRole::Unreadable(
            "a program runs other programs in an unsupported way",
        ));
    }
    let wrapper = WRAPPERS.iter().find(|it| it.name == name)?;
    Some(find_wrapped_command(wrapper, words, at))
}

fn find_wrapped_command(wrapper: &WrapperProgram, words: &[ShellWord], at: usize) -> ProgramRole {
    let mut next = at + 1;
    while let Some(word) = words.get(next) {
        let text = word.text.as_str();
        let named = text.split_once('=').map_or(text, |it| it.0);
        if text == "--" {
            next += 1;
            break;
        } else if wrapper.flags.contains(&text) || named != text && wrapper.valued.contains(&named)
        {
            next += 1;
        } else if wrapper.valued.contains(&text) {
            next += 2;
        } else if text.starts_with('-') {
            return ProgramRole::Unreadable(
                "a program that runs other programs has an unknown option",
            );
        } else {
            break;
        }
    }
    next += wrapper.operands;
    if matches!(wrapper.name, "env" | "genv") {
        next += words.iter().skip(next).take_while(|it| is_assignment(it)).count();
    }
    let is_open = |it: &ShellWord| it.kind == WordKind::Open;
    match words.get(next) {
        _ if words[at..next.min(words.len())].iter().any(is_open) => {
            ProgramRole::Unreadable("the program is not a literal word")
        }
        None => ProgramRole::Plain,
        // `flock FILE -c LINE`, `su USER -c LINE`.
        Some(word) if word.text.starts_with('-') => {
            ProgramRole::Unreadable("a program passes a line to a shell")
        }
        // `ssh` passes a line to a shell on another machine, and the others join their words.
        Some(_) if matches!(wrapper.name, "ssh" | "watch" | "parallel" | "su") => {
            ProgramRole::Unreadable("a program passes a line to a shell")
        }
        Some(_) => ProgramRole::RunsCommandAt(next),
    }
}
