//! Why a daemon failed to start.

use crate::{policy_store::PolicyStoreError, tenants::TenantsError};
use jackfield_fleet::{FleetConnectionError, LeaseError};
use jackfield_journal::{OpenError, ReadError};
use jackfield_transport::{BindError, EndpointAddress, TokenError};
use std::{io, path::PathBuf};

/// Why a daemon failed to start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("cannot use directory `{}`", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot use lock file `{}`", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another daemon{} is already running: it holds the lock `{}`", format_pid(*pid), path.display())]
    AlreadyRuns { path: PathBuf, pid: Option<u32> },
    #[error("cannot open the journal")]
    Journal(#[source] OpenError),
    #[error("cannot read the journal")]
    Recover(#[source] ReadError),
    #[error("cannot listen on `{address}`")]
    Listen {
        address: EndpointAddress,
        #[source]
        source: BindError,
    },
    #[error("cannot listen on the socket of the service manager")]
    PassedSocket(#[source] BindError),
    #[error("cannot use the token file")]
    Token(#[source] TokenError),
    #[error("cannot use the tenants file")]
    Tenants(#[source] TenantsError),
    #[error("cannot join the fleet")]
    Fleet(#[source] FleetError),
    #[error("cannot use the policy files")]
    Rules(#[source] PolicyStoreError),
    #[error("cannot prepare {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

fn format_pid(pid: Option<u32>) -> String {
    pid.map(|it| format!(" (pid {it})")).unwrap_or_default()
}

/// Why a daemon failed to join its fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Connection(#[from] FleetConnectionError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error("cannot create the watchdog timer of this host")]
    NoWatchdog(#[source] io::Error),
}
