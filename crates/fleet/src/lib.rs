//! A fleet: hosts and gateways that are connected over NATS.
//!
//! [`gateway`] decides where the frames of a client go and is pure; [`gateway_process`] runs it. Everything else
//! connects the members of a fleet and does not interpret frames. Reading order: [`FleetConnection`] (`connection.rs`, the connection and its subjects),
//! [`HostEntry`] (`host_entry.rs`, what a host publishes about itself), [`HostLease`] (`lease.rs` and `renewal.rs`,
//! how it renews its entry), [`HostDirectory`] (`host_directory.rs`, the live hosts),
//! `host_messages.rs` and `host_requests.rs` (requests to one host), `host_connection.rs` (byte
//! streams between a gateway and a host), [`ClusterHealth`] (`health.rs`, the state of the
//! servers), [`AuditLog`] (`audit_log.rs`, what clients have done), [`FleetRole`] (`roles.rs`, the
//! permissions of hosts, gateways and operators on the servers) and `certificates.rs` (how servers
//! identify them).
//!
//! **Invariant:** a host that cannot renew its lease detects that and ends its agents before any
//! other host may consider it dead. Its own clock decides the former, the clock of each observer
//! the latter; no two clocks are compared. While the list of hosts has no leader, no host is
//! considered dead, and a host waits as long as most servers themselves report that there is no
//! leader.
//!
//! **Invariant:** a host connection relays bytes in order and without gaps, or it ends.

mod audit_log;
mod certificates;
mod connection;
pub mod gateway;
pub mod gateway_process;
mod health;
mod host_connection;
mod host_directory;
mod host_entry;
mod host_messages;
mod host_requests;
mod lease;
mod renewal;
mod roles;

pub use audit_log::{AuditEnd, AuditEvent, AuditLog};
pub use certificates::{CertificateIssueError, write_certificates};
pub use connection::{FleetConnection, FleetConnectionError, ServerInfo, random_id};
pub use health::ClusterHealth;
pub use host_connection::{accept_host_connection, open_host_connection};
pub use host_directory::HostDirectory;
pub use host_entry::{HostEntry, HostInstance, TenantUsage};
pub use host_messages::{HostRequest, HostResponse};
pub use host_requests::{ReceivedRequest, RequestListener};
pub use lease::{HostLease, LeaseError, LeaseEvent};
pub use roles::FleetRole;
