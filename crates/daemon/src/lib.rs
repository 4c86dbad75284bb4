//! The process around the hub: it starts, recovers, listens, runs the one loop, and stops.
//!
//! Read in this order: [`paths`] and [`config`] (what it is told), `lock` and `boot` (how it comes
//! up), `main_loop` (one input at a time), `effects` (carrying out what the hub asks), `chunks`
//! (events on their way to the journal), `roster` (agents by name), [`rulebook`] (what they may
//! do), `served` (files and terminals that no client serves), `notify` (telling people), `observe`
//! (log lines), `recorder` (the last inputs, for the day an assertion fails), `tenants` (who else
//! may come in), `web` (the thread that speaks HTTP), `fleet` (this daemon as one of many).
//!
//! - **Invariant:** one thread owns the hub and all its sockets and pipes; the journal's threads talk to
//!   it by mailbox, and the web front by the hub's own socket.
//! - **Invariant:** the loop never waits for anything but its mailboxes.
//! - **Invariant:** after boot nothing propagates as an error: it becomes an input.

mod boot;
mod chunks;
mod clock;
pub mod config;
mod copy;
mod effects;
pub mod environment;
mod fleet;
mod freed_memory;
mod listeners;
mod lock;
mod log_file;
mod log_repeats;
mod main_loop;
mod metrics;
pub mod notify;
mod observe;
pub mod paths;
mod peers;
mod pressure;
mod recorder;
mod recover;
mod reload;
mod roster;
pub mod rulebook;
mod serve;
mod served;
mod service_manager;
mod signals;
mod tenants;
pub mod token;
mod web;

pub use boot::clean_up;
pub use config::Settings;
pub use fleet::{Care, Fleet, FleetError, Role};
pub use jackfield_hub::{TENANT_NAME_RULE, Tenant, is_tenant_name};
pub use lock::{HolderProcess, LockHolder, find_holder};
pub use log_file::limit_log;
pub use metrics::Metrics;
pub use observe::{LogTarget, start as start_log};
pub use paths::Paths;
pub use roster::catalogue;
pub use serve::{BootError, Isolated, JournalChoice, Options, Ready, isolated, serve};
pub use tenants::{Tenants, TenantsError, UNCONFINED_AGENTS_WARNING, token_hash};
pub use web::{Front, Routes};
