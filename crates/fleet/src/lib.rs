//! Hosts and gateways of a fleet find each other and talk, over NATS. What clients say is not known here.
//!
//! Reading order: [`Link`] (`link.rs`, the connection and the names on it), [`Entry`] (`entry.rs`, what a
//! host says of itself), [`Lease`] (`lease.rs`, how it goes on saying it), [`Directory`] (`directory.rs`,
//! who is there, and who no longer is), `words.rs` and `ask.rs` (a question to one host), `leg.rs` (a stream of bytes
//! between a gateway and a host), [`Health`] (`health.rs`, how the servers are),
//! [`Trail`] (`trail.rs`, what clients have done), [`FleetRole`] (`roles.rs`, what a host, a gateway and an
//! operator may do on the servers) and `certificates.rs` (how the servers know them).
//!
//! **Invariant:** a host that cannot renew its lease knows it, and ends its agents, before anybody else may
//! think that it is dead. Its own clock decides the one, the clock of each who watches the other; no two
//! clocks are compared. While the list of hosts has no leader nobody is called dead, and a host waits for
//! as long as most servers tell it so themselves.
//!
//! **Invariant:** a leg carries bytes in order and without a gap, or it ends.

mod ask;
mod certificates;
mod directory;
mod entry;
mod health;
mod lease;
mod leg;
mod link;
mod roles;
mod trail;
mod words;

pub use ask::{Asked, Questions};
pub use certificates::{CertificateError, write_certificates};
pub use directory::Directory;
pub use entry::{Entry, HostName, Share};
pub use health::Health;
pub use lease::{Lease, LeaseError, LeaseEvent};
pub use leg::{answer_leg, open_leg};
pub use link::{Link, LinkError, Server, unique};
pub use roles::FleetRole;
pub use trail::{Trail, Word};
pub use words::{Answer, Question};
