//! Starts a program with `sandbox-exec`, and forwards its connections to the network proxy.

use super::seatbelt::{SeatbeltLaunch, write_profile};
use crate::os::{LayerProblem, LayerSupport, RunError, environment, forward::forward_connections};
use crate::plan::{EnforcementLayer, NetworkPlan, ResourceLimits, SandboxPlan};
use std::{
    ffi::OsString,
    fs, io,
    net::{Ipv4Addr, TcpListener},
    os::unix::{fs::DirBuilderExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
};

const PROGRAM: &str = "/usr/bin/sandbox-exec";
const SIGNAL_BASE: i32 = 128;

/// The sandbox could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SeatbeltError {
    #[error(
        "limits of profile `{profile}` cannot be enforced on macOS; remove `limits` from the profile"
    )]
    Limits { profile: String },
    #[error("failed to create the temporary directory `{}`", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("failed to listen for connections to the network proxy")]
    Listen(#[source] io::Error),
    #[error("failed to execute `{PROGRAM}`")]
    Execute(#[source] io::Error),
}

/// Whether `sandbox-exec` is there.
pub(crate) fn detect_layers() -> Vec<LayerSupport> {
    let problem = || LayerProblem {
        reason: format!("`{PROGRAM}` does not exist"),
        hint: "use the profile `open`, which starts agents without a sandbox".to_owned(),
    };
    let state = Path::new(PROGRAM).is_file().then(|| PROGRAM.to_owned()).ok_or_else(problem);
    vec![LayerSupport { layer: EnforcementLayer::Seatbelt, state }]
}

/// Runs a program under a plan and waits for its end.
pub fn run(plan: &SandboxPlan, argv: &[OsString]) -> Result<ExitCode, RunError> {
    match plan.layer {
        EnforcementLayer::Seatbelt => Ok(run_seatbelt(plan, argv)?),
        layer @ (EnforcementLayer::Bubblewrap | EnforcementLayer::Landlock) => {
            Err(RunError::Unsupported { layer })
        }
    }
}

fn run_seatbelt(plan: &SandboxPlan, argv: &[OsString]) -> Result<ExitCode, SeatbeltError> {
    if plan.limits != ResourceLimits::default() {
        return Err(SeatbeltError::Limits { profile: plan.profile.clone() });
    }
    let directory = PrivateDirectory::create()?;
    let mut command = Command::new(PROGRAM);
    command.env_clear().envs(environment::process_variables(plan, std::env::vars_os()));
    command.env("TMPDIR", &directory.path);
    let mut proxy_port = None;
    if let NetworkPlan::Proxy { socket } = &plan.network {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(SeatbeltError::Listen)?;
        let address = listener.local_addr().map_err(SeatbeltError::Listen)?;
        proxy_port = Some(address.port());
        command.envs(environment::proxy_variables(address, plan.proxies_loopback));
        let socket = socket.clone();
        thread::spawn(move || forward_connections(&listener, &socket));
    }
    let launch = SeatbeltLaunch { proxy_port, private_directory: &directory.path };
    command.arg("-p").arg(write_profile(plan, launch)).args(argv);
    let status = command.status().map_err(SeatbeltError::Execute)?;
    let code = status.code().or_else(|| status.signal().map(|it| SIGNAL_BASE + it));
    let code = code.and_then(|it| u8::try_from(it).ok()).unwrap_or(u8::MAX);
    Ok(ExitCode::from(code))
}

/// A temporary directory that is deleted when the program has ended. It remains if this process is killed.
struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    fn create() -> Result<PrivateDirectory, SeatbeltError> {
        let name = format!("jackfield-sandbox-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        let created = created.and_then(|()| path.canonicalize());
        let path = created.map_err(|source| SeatbeltError::Directory { path, source })?;
        Ok(PrivateDirectory { path })
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // The system deletes old temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The system deletes old temporary files.
pub fn delete_left_directories(_parent: &Path) {}

/// No program is needed inside.
pub fn init_main(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
