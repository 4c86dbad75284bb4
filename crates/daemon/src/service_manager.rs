//! Notifies the service manager that started the daemon, such as systemd, when the daemon is ready,
//! reloads and stops, as `sd_notify(3)` describes it.

use rustix::{
    net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with},
    time::{ClockId, clock_gettime},
};
use std::{env, io, os::unix::ffi::OsStrExt as _};

/// The socket of the service manager.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    address: Option<SocketAddrUnix>,
}

impl ServiceManager {
    pub(crate) fn from_env() -> ServiceManager {
        let socket = env::var_os("NOTIFY_SOCKET");
        let address = socket.and_then(|it| match it.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name).ok(),
            None => SocketAddrUnix::new(it.as_bytes()).ok(),
        });
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
        let send = || -> io::Result<()> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
            sendto(&socket, message.as_bytes(), SendFlags::NOSIGNAL, address)?;
            Ok(())
        };
        if let Err(error) = send() {
            tracing::warn!(%error, message, "failed to notify the service manager");
        }
    }
}
