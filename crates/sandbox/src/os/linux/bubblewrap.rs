//! Enforces a plan with `bwrap`: mount, user, process, IPC and network namespaces, and a system call filter.

use super::{descriptors, environment, init::InitOptions, resources, seccomp};
use crate::plan::{NetworkPlan, PathAccess, SandboxPlan};
use crate::planning::{DiskLookup, EntryKind, PathLookup};
use std::{
    convert::Infallible,
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

/// Where the program is searched. Not on `PATH`, which may contain a directory that an agent can write to.
const PROGRAM_PATHS: &[&str] = &[
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
    "/run/wrappers/bin/bwrap",
];

/// The sandbox could not be started.
#[derive(Debug, thiserror::Error)]
pub enum BubblewrapError {
    #[error("`bwrap` is not installed in a system directory")]
    NotInstalled,
    #[error("the plan has no rule for `/` that permits reading")]
    NoRoot,
    #[error(transparent)]
    Filter(#[from] seccomp::FilterError),
    #[error("failed to open `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("failed to prepare the arguments of `bwrap`")]
    Prepare(#[source] io::Error),
    #[error("failed to execute `{}`", program.display())]
    Execute { program: PathBuf, source: io::Error },
}

/// Finds `bwrap`.
pub fn find_program() -> Option<PathBuf> {
    PROGRAM_PATHS.iter().map(PathBuf::from).find(|it| it.is_file())
}

/// Replaces this process by `bwrap`, which starts `sandbox-init`, which becomes `argv`.
pub fn run(plan: &SandboxPlan, argv: &[OsString]) -> Result<Infallible, BubblewrapError> {
    let program = find_program().ok_or(BubblewrapError::NotInstalled)?;
    // The programs of the sandbox get nothing that this process has inherited or opened.
    descriptors::close_all_on_exec().map_err(BubblewrapError::Prepare)?;
    let own_program = open_path(Path::new("/proc/self/exe"))?;
    let proxy = match &plan.network {
        NetworkPlan::Proxy { socket } => Some(open_path(socket)?),
        NetworkPlan::None | NetworkPlan::All => None,
    };
    let filters = seccomp::build_filters(seccomp::SocketScope::Namespace)?;
    let filters = filters.iter().map(|it| descriptors::pass_bytes(&seccomp::to_bytes(it)));
    let filters: Vec<File> = filters.collect::<Result<_, _>>().map_err(BubblewrapError::Prepare)?;
    let directory = std::env::current_dir().map_err(BubblewrapError::Prepare)?;
    let mut options = sandbox_options(plan, &directory, &DiskLookup)?;
    for filter in &filters {
        options.extend(["--add-seccomp-fd".into(), filter.as_raw_fd().to_string().into()]);
    }
    // Not as arguments, which the process could read in `/proc/1/cmdline`: they name what is hidden.
    let options =
        descriptors::pass_bytes(&join_options(&options)).map_err(BubblewrapError::Prepare)?;
    for descriptor in proxy.iter().chain([&own_program]) {
        descriptors::keep_on_exec(descriptor).map_err(BubblewrapError::Prepare)?;
    }
    let init = InitOptions {
        proxy: proxy.as_ref().map(std::os::fd::AsRawFd::as_raw_fd),
        proxies_loopback: plan.proxies_loopback,
        limits: resources::limit_group(plan.limits),
    };
    let mut command = Command::new(&program);
    command.arg("--args").arg(options.as_raw_fd().to_string()).arg("--");
    command.arg(format!("/proc/self/fd/{}", own_program.as_raw_fd()));
    command.args(init.to_args()).args(argv);
    command.env_clear().envs(environment::process_variables(plan, std::env::vars_os()));
    descriptors::ignore_termination();
    let source = command.exec();
    Err(BubblewrapError::Execute { program, source })
}

fn open_path(path: &Path) -> Result<OwnedFd, BubblewrapError> {
    descriptors::open_path(path)
        .map_err(|source| BubblewrapError::Open { path: path.to_owned(), source })
}

/// Arguments in the form of `bwrap --args`.
fn join_options(options: &[OsString]) -> Vec<u8> {
    options.iter().flat_map(|it| it.as_bytes().iter().copied().chain([0])).collect()
}

/// The options of `bwrap` for a plan, without descriptors.
pub fn sandbox_options(
    plan: &SandboxPlan,
    directory: &Path,
    lookup: &dyn PathLookup,
) -> Result<Vec<OsString>, BubblewrapError> {
    let mut options = OptionList::default();
    for flag in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        // Without it, a process could insert input into the terminal of the daemon.
        "--new-session",
        "--die-with-parent",
    ] {
        options.add(&[flag]);
    }
    options.add(&["--cap-drop", "ALL"]);
    if plan.network != NetworkPlan::All {
        options.add(&["--unshare-net"]);
    }
    let root = plan.paths.iter().find(|it| it.path == Path::new("/")).map(|it| it.access);
    let bind = match root {
        Some(PathAccess::ReadOnly) => "--ro-bind",
        Some(PathAccess::Writable) => "--bind",
        Some(PathAccess::Hidden | PathAccess::Temporary) | None => {
            return Err(BubblewrapError::NoRoot);
        }
    };
    options.add(&[bind, "/", "/"]);
    options.add(&["--dev", "/dev", "--proc", "/proc"]);
    // Root may change settings of the kernel without any capability, for example the program that the kernel
    // runs, outside of the sandbox, when a process crashes.
    options.add_bind("--ro-bind", Path::new("/proc/sys"));
    options.add_mounts(plan, lookup);
    options.add_path("--chdir", directory);
    Ok(options.0)
}

#[derive(Default)]
struct OptionList(Vec<OsString>);

impl OptionList {
    fn add(&mut self, texts: &[&str]) {
        self.0.extend(texts.iter().map(OsString::from));
    }

    fn add_path(&mut self, option: &str, path: &Path) {
        self.0.extend([option.into(), path.into()]);
    }

    fn add_bind(&mut self, option: &str, path: &Path) {
        self.0.extend([option.into(), path.into(), path.into()]);
    }

    /// Mounts in the order of their paths, so that a longer path is mounted over a shorter one.
    fn add_mounts(&mut self, plan: &SandboxPlan, lookup: &dyn PathLookup) {
        let mut rules: Vec<_> = plan.paths.iter().filter(|it| it.path != Path::new("/")).collect();
        rules.sort_by(|left, right| left.path.cmp(&right.path));
        let mut links: Vec<_> = plan.links.iter().collect();
        links.sort_by(|left, right| left.path.cmp(&right.path));
        let mut links = links.into_iter().peekable();
        let mut hidden = Vec::new();
        for rule in rules {
            while let Some(link) = links.next_if(|it| it.path < rule.path) {
                self.0.extend([
                    "--symlink".into(),
                    link.target.clone().into(),
                    link.path.clone().into(),
                ]);
            }
            let path = &rule.path;
            match rule.access {
                PathAccess::Writable if path.starts_with("/dev") => {
                    self.add_bind("--dev-bind", path);
                }
                PathAccess::Writable => self.add_bind("--bind", path),
                PathAccess::ReadOnly => self.add_bind("--ro-bind", path),
                PathAccess::Temporary => {
                    self.add(&["--perms", "1777"]);
                    self.add_path("--tmpfs", path);
                }
                // It cannot be opened, because devices do not work in the mount.
                PathAccess::Hidden if lookup.kind(path) == Some(EntryKind::File) => {
                    self.0.extend(["--ro-bind".into(), "/dev/null".into(), path.into()]);
                }
                PathAccess::Hidden => {
                    self.add_path("--tmpfs", path);
                    hidden.push(path);
                }
            }
        }
        for link in links {
            self.0.extend([
                "--symlink".into(),
                link.target.clone().into(),
                link.path.clone().into(),
            ]);
        }
        // Last, because the mount points of longer paths are created in the empty directories.
        for path in hidden {
            self.add_path("--remount-ro", path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EnforcementLayer, PathLink, PathRule, ResourceLimits};

    struct FileLookup;

    impl PathLookup for FileLookup {
        fn resolve(&self, path: &Path) -> Option<PathBuf> {
            Some(path.to_owned())
        }

        fn kind(&self, path: &Path) -> Option<EntryKind> {
            let is_file = path.extension().is_some();
            Some(if is_file { EntryKind::File } else { EntryKind::Directory })
        }

        fn list(&self, _path: &Path) -> Vec<OsString> {
            Vec::new()
        }
    }

    fn plan(rules: &[(&str, PathAccess)]) -> SandboxPlan {
        let rule =
            |(path, access): &(&str, PathAccess)| PathRule { path: path.into(), access: *access };
        SandboxPlan {
            profile: "workspace".into(),
            layer: EnforcementLayer::Bubblewrap,
            paths: rules.iter().map(rule).collect(),
            links: vec![PathLink {
                path: "/home/ann/.rustup".into(),
                target: "/data/rustup".into(),
            }],
            env: Vec::new(),
            network: NetworkPlan::None,
            proxies_loopback: false,
            limits: ResourceLimits::default(),
            unprotected: Vec::new(),
        }
    }

    #[test]
    fn options_mount_longer_paths_over_shorter_ones() {
        let plan = plan(&[
            ("/", PathAccess::ReadOnly),
            ("/home", PathAccess::Hidden),
            ("/home/ann/app/.git/hooks", PathAccess::ReadOnly),
            ("/home/ann/app", PathAccess::Writable),
            ("/home/ann/app/secret.txt", PathAccess::Hidden),
            ("/tmp", PathAccess::Temporary),
            ("/dev/kvm", PathAccess::Writable),
        ]);
        let options = sandbox_options(&plan, Path::new("/home/ann/app"), &FileLookup).unwrap();
        let text = options.join(&OsString::from(" ")).into_string().unwrap();
        insta::assert_snapshot!(text.replace(" --", "\n--"), @"
    --unshare-user
    --unshare-pid
    --unshare-ipc
    --unshare-uts
    --unshare-cgroup-try
    --new-session
    --die-with-parent
    --cap-drop ALL
    --unshare-net
    --ro-bind / /
    --dev /dev
    --proc /proc
    --ro-bind /proc/sys /proc/sys
    --dev-bind /dev/kvm /dev/kvm
    --tmpfs /home
    --symlink /data/rustup /home/ann/.rustup
    --bind /home/ann/app /home/ann/app
    --ro-bind /home/ann/app/.git/hooks /home/ann/app/.git/hooks
    --ro-bind /dev/null /home/ann/app/secret.txt
    --perms 1777
    --tmpfs /tmp
    --remount-ro /home
    --chdir /home/ann/app
    ");
    }

    #[test]
    fn network_of_the_machine_is_shared_only_if_all_is_permitted() {
        let plan = |network| SandboxPlan { network, ..plan(&[("/", PathAccess::Writable)]) };
        let is_unshared = |network| {
            let options = sandbox_options(&plan(network), Path::new("/"), &FileLookup).unwrap();
            options.contains(&"--unshare-net".into())
        };
        assert!(!is_unshared(NetworkPlan::All));
        assert!(is_unshared(NetworkPlan::None));
        assert!(is_unshared(NetworkPlan::Proxy { socket: "/run/s".into() }));
    }

    #[test]
    fn hidden_root_is_refused() {
        let plan = plan(&[("/", PathAccess::Hidden)]);
        assert!(sandbox_options(&plan, Path::new("/"), &FileLookup).is_err());
    }
}
