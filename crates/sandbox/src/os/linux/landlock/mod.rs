//! Enforcement with Landlock, for machines that forbid user namespaces.
//!
//! Landlock limits files, signals and tracing. What it does not limit, connections and the metadata of
//! files, is performed by a supervisor: the process that calls [`run`] stays as the parent of the agent,
//! the kernel stops the agent in those calls, and the supervisor copies their arguments, decides, and
//! makes the call itself. The agent never makes an examined call: it could change the arguments between.
//!
//! Read in this order: [`path_grants`] turns the plan into grants, [`ruleset`] gives them to the kernel,
//! [`call_filter`] chooses the supervised calls, [`launch`] starts the agent, [`supervisor`] waits for it,
//! and [`call_handler`] performs calls.

mod call_filter;
mod call_handler;
mod calling_thread;
mod error;
mod file_metadata;
mod launch;
mod listener;
mod loopback_servers;
mod path_grants;
mod private_directory;
mod proxy_connection;
mod ruleset;
mod socket_address;
mod supervisor;
mod terminals;

pub use error::LandlockError;
pub use private_directory::delete_unused;

use super::{environment, resources};
use crate::plan::{NetworkPlan, SandboxPlan};
use path_grants::PathTable;
use private_directory::PrivateDirectory;
use proxy_connection::PROXY_ADDRESS;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Starts a program with the limits of a plan, waits for its end and returns its exit code, which is 128
/// and the number of the signal if one ended it. When it has ended, so have all processes that it started.
///
/// To be called by a process with one thread and nothing else to do: it gives up its capabilities, handles
/// signals, and ends with its parent.
pub fn run(plan: &SandboxPlan, program: &OsStr, args: &[OsString]) -> Result<u8, LandlockError> {
    let limits = resources::limit_group(plan.limits);
    if let Some(processes) = limits.processes {
        return Err(LandlockError::ProcessLimit { processes });
    }
    supervisor::prepare_process()?;
    let private = PrivateDirectory::make_all(&plan.paths)?;
    let private_paths: Vec<_> = private.iter().map(|it| it.path.clone()).collect();
    let paths = PathTable::new(&plan.paths, &private_paths);
    let has_network = plan.network == NetworkPlan::All;
    let ruleset = ruleset::create(&paths.grants(&path_grants::list_directory)?, has_network)?;
    let (signals, original) = supervisor::block_signals()?;
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(environment::process_variables(plan, std::env::vars_os()));
    command.envs(private_directory::variables(&private));
    if matches!(plan.network, NetworkPlan::Proxy { .. }) {
        let address = PROXY_ADDRESS.into();
        command.envs(environment::proxy_variables(address, plan.proxies_loopback));
    }
    let agent = launch::start(command, ruleset, original, has_network, limits)?;
    supervisor::supervise(agent, &signals, paths, plan.network.clone())
}
