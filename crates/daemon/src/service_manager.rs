//! Notifies the service manager that started the daemon, such as systemd, when the daemon is ready,
//! reloads and stops, as `sd_notify(3)` describes it.

use jackfield_transport::send_datagram;
use rustix::time::{ClockId, clock_gettime};
use std::{env, ffi::OsString};

/// The socket of the service manager.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    address: Option<OsString>,
}

impl ServiceManager {
    pub(crate) fn from_env() -> ServiceManager {
        let address = env::var_os("NOTIFY_SOCKET").filter(|it| !it.is_empty());
        ServiceManager { address }
    }

    /// For a hub that is not a service.
    pub(crate) fn absent() -> ServiceManager {
        ServiceManager::default()
    }

    /// Clients can connect, and the configuration is applied.
    pub(crate) fn send_ready(&self) {
        self.send("READY=1");
    }

    pub(crate) fn send_reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    pub(crate) fn send_stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, message: &str) {
        let Some(address) = &self.address else { return };
        if let Err(error) = send_datagram(address, message.as_bytes()) {
            tracing::warn!(%error, message, "failed to notify the service manager");
        }
    }
}
