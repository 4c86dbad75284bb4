//! Tries the layers of Linux. Settings of the kernel alone do not show whether `bwrap` works: containers
//! and security modules forbid parts of it, so a small sandbox is started.

use super::{bubblewrap, kernel_version};
use crate::os::layer_support::{LayerProblem, LayerSupport};
use crate::plan::EnforcementLayer;
use std::{
    fs, io,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const TRIAL_BOUND: Duration = Duration::from_secs(5);
const TRIAL_PAUSE: Duration = Duration::from_millis(1);
/// The newest option that a sandbox needs.
const NEWEST_OPTION: &str = "--add-seccomp-fd";
/// The first version of Landlock that limits signals and abstract sockets.
const LANDLOCK_MIN: u32 = 6;

const TRIAL_OPTIONS: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--perms",
    "1777",
    "--tmpfs",
    "/tmp",
    "--",
    "/bin/sh",
    "-c",
    ":",
];

/// Tries both layers.
pub(crate) fn detect_layers() -> Vec<LayerSupport> {
    vec![
        LayerSupport { layer: EnforcementLayer::Bubblewrap, state: try_bubblewrap() },
        LayerSupport { layer: EnforcementLayer::Landlock, state: check_landlock() },
    ]
}

fn try_bubblewrap() -> Result<String, LayerProblem> {
    let program = bubblewrap::find_program().ok_or_else(|| LayerProblem {
        reason: "`bwrap` is not installed in a system directory".to_owned(),
        hint: "install the package `bubblewrap`, for example with `sudo apt install bubblewrap`"
            .to_owned(),
    })?;
    let help = run_bounded(Command::new(&program).arg("--help").stdout(Stdio::piped()));
    if !help.as_ref().is_ok_and(|it| it.stdout.contains(NEWEST_OPTION)) {
        return Err(LayerProblem {
            reason: format!("`{}` has no option `{NEWEST_OPTION}`", program.display()),
            hint: "install a newer version of bubblewrap; 0.8 is tested".to_owned(),
        });
    }
    let trial = run_bounded(Command::new(&program).args(TRIAL_OPTIONS).stderr(Stdio::piped()));
    match trial {
        Ok(trial) if trial.succeeded => {
            let version =
                run_bounded(Command::new(&program).arg("--version").stdout(Stdio::piped()));
            Ok(version.map_or_else(|_| String::new(), |it| it.stdout.trim().to_owned()))
        }
        Ok(trial) => Err(explain_failure(trial.stderr.trim(), &KernelSettings::read())),
        Err(error) => Err(explain_failure(&error.to_string(), &KernelSettings::read())),
    }
}

/// The settings that forbid user namespaces.
#[derive(Debug, Default)]
struct KernelSettings {
    /// A setting of Debian's kernels.
    userns_clone: Option<u64>,
    max_user_namespaces: Option<u64>,
    /// A setting of Ubuntu since 23.10.
    apparmor_restricts: Option<u64>,
    is_container: bool,
}

impl KernelSettings {
    fn read() -> KernelSettings {
        let read = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        KernelSettings {
            userns_clone: read("/proc/sys/kernel/unprivileged_userns_clone"),
            max_user_namespaces: read("/proc/sys/user/max_user_namespaces"),
            apparmor_restricts: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            is_container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|it| Path::new(it).exists()),
        }
    }
}

fn explain_failure(message: &str, settings: &KernelSettings) -> LayerProblem {
    let (reason, hint) = if settings.userns_clone == Some(0) {
        (
            "user namespaces are forbidden by `kernel.unprivileged_userns_clone = 0`",
            "permit them with `sudo sysctl -w kernel.unprivileged_userns_clone=1`, and with a line in \
             /etc/sysctl.d for the next boot",
        )
    } else if settings.max_user_namespaces == Some(0) {
        (
            "user namespaces are forbidden by `user.max_user_namespaces = 0`",
            "permit them with `sudo sysctl -w user.max_user_namespaces=10000`, and with a line in \
             /etc/sysctl.d for the next boot",
        )
    } else if settings.apparmor_restricts == Some(1) {
        (
            "AppArmor forbids user namespaces to programs without a profile",
            "add a profile for `bwrap` that contains `userns,` to /etc/apparmor.d (the package \
             `apparmor-profiles` has one: `bwrap-userns-restrict`)",
        )
    } else if settings.is_container {
        (
            "the container forbids namespaces or mounts",
            "start the container with permission for them (Docker: `--security-opt seccomp=unconfined \
             --security-opt systempaths=unconfined`)",
        )
    } else {
        (
            "a trial of `bwrap` failed",
            "the message of `bwrap` names the cause; namespaces have to be permitted on this machine",
        )
    };
    let reason =
        if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    LayerProblem { reason, hint: hint.to_owned() }
}

fn check_landlock() -> Result<String, LayerProblem> {
    let version = kernel_version::landlock_version();
    explain_landlock(version)
}

fn explain_landlock(version: Result<u32, io::Error>) -> Result<String, LayerProblem> {
    let hint = "use a kernel of version 6.12 or newer";
    match version {
        Ok(version) if LANDLOCK_MIN <= version => Ok(format!("Landlock ABI {version}")),
        Ok(version) => Err(LayerProblem {
            reason: format!("the kernel has Landlock ABI {version}, and {LANDLOCK_MIN} is needed"),
            hint: hint.to_owned(),
        }),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Err(LayerProblem {
            reason: "Landlock is disabled".to_owned(),
            hint: "add `landlock` to the parameter `lsm=` of the kernel".to_owned(),
        }),
        Err(error) => Err(LayerProblem {
            reason: format!("the kernel has no Landlock: {error}"),
            hint: hint.to_owned(),
        }),
    }
}

/// A program that has ended.
struct TrialOutput {
    succeeded: bool,
    stdout: String,
    stderr: String,
}

/// Runs a program that prints little, and kills it after the bound.
fn run_bounded(command: &mut Command) -> io::Result<TrialOutput> {
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if TRIAL_BOUND < begin.elapsed() {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(TRIAL_PAUSE);
    };
    let mut output =
        TrialOutput { succeeded: status.success(), stdout: String::new(), stderr: String::new() };
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut output.stdout)?;
    }
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut output.stderr)?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_trial_is_explained_by_the_settings_of_the_kernel() {
        let message = "bwrap: No permissions to create new namespace";
        let settings = [
            KernelSettings { userns_clone: Some(0), ..Default::default() },
            KernelSettings { max_user_namespaces: Some(0), ..Default::default() },
            KernelSettings { apparmor_restricts: Some(1), ..Default::default() },
            KernelSettings { is_container: true, ..Default::default() },
            KernelSettings {
                userns_clone: Some(1),
                apparmor_restricts: Some(0),
                ..Default::default()
            },
        ];
        let lines = settings.map(|it| {
            let problem = explain_failure(message, &it);
            format!("{}\n  {}", problem.reason, problem.hint)
        });
        insta::assert_snapshot!(lines.join("\n"), @"
    user namespaces are forbidden by `kernel.unprivileged_userns_clone = 0`: bwrap: No permissions to create new namespace
      permit them with `sudo sysctl -w kernel.unprivileged_userns_clone=1`, and with a line in /etc/sysctl.d for the next boot
    user namespaces are forbidden by `user.max_user_namespaces = 0`: bwrap: No permissions to create new namespace
      permit them with `sudo sysctl -w user.max_user_namespaces=10000`, and with a line in /etc/sysctl.d for the next boot
    AppArmor forbids user namespaces to programs without a profile: bwrap: No permissions to create new namespace
      add a profile for `bwrap` that contains `userns,` to /etc/apparmor.d (the package `apparmor-profiles` has one: `bwrap-userns-restrict`)
    the container forbids namespaces or mounts: bwrap: No permissions to create new namespace
      start the container with permission for them (Docker: `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`)
    a trial of `bwrap` failed: bwrap: No permissions to create new namespace
      the message of `bwrap` names the cause; namespaces have to be permitted on this machine
    ");
    }

    #[test]
    fn landlock_needs_a_version_with_scopes() {
        assert_eq!(explain_landlock(Ok(7)), Ok("Landlock ABI 7".to_owned()));
        for version in [Ok(5), Err(libc::EOPNOTSUPP), Err(libc::ENOSYS)] {
            let version = version.map_err(io::Error::from_raw_os_error);
            assert!(explain_landlock(version).is_err());
        }
    }

    #[test]
    fn program_that_does_not_end_is_killed() {
        let begin = Instant::now();
        let result = run_bounded(Command::new("sleep").arg("1000"));
        assert_eq!(result.err().map(|it| it.kind()), Some(io::ErrorKind::TimedOut));
        assert!(begin.elapsed() < 3 * TRIAL_BOUND);
    }
}
