//! The daemon process around the hub: starts, recovers, listens, runs the loop, and stops.
//!
//! Read in this order: [`paths`] and [`config`] (configuration), `lock` and `boot` (start), `main_loop`
//! (one input at a time), `effects` (carrying out the outputs of the hub), `append_queue` (batches for the
//! journal), `agent_registry` (agents by name), [`policy_store`] (policy files), `served` (files and
//! terminals for agents without a client), `notify` (notifications), `observe` (log lines), `recorder`
//! (the last inputs, for failed assertions), `tenants` (the tenants file), `web` (the HTTP thread),
//! `fleet` (this daemon as a member of a fleet).
//!
//! - **Invariant:** one thread owns the hub and all its sockets and pipes. The journal's threads use
//!   channels to it, and the web server uses the hub's own socket.
//! - **Invariant:** the loop waits only for its channels.
//! - **Invariant:** after the start no error is returned: it becomes an input.

mod agent_registry;
mod append_queue;
mod boot;
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
pub mod policy_store;
mod pressure;
mod recorder;
mod recover;
mod reload;
mod serve;
mod served;
mod service_manager;
mod signals;
mod tenants;
pub mod token;
mod web;

pub use agent_registry::{FIX_SEPARATOR, load_catalog};
pub use boot::clean_up;
pub use config::Settings;
pub use fleet::{FleetConfig, FleetError, LogMaintenanceConfig, MemberRole};
pub use jackfield_hub::{TENANT_NAME_RULE, Tenant, is_tenant_name};
pub use lock::{HolderProcess, LockHolder, find_holder};
pub use log_file::limit_log;
pub use metrics::MetricsSource;
pub use observe::{LogTarget, start_log};
pub use paths::Paths;
pub use serve::{
    BootError, DaemonOptions, DaemonReady, IsolatedHub, JournalChoice, serve, start_isolated,
};
pub use tenants::{Tenants, TenantsError, UNCONFINED_AGENTS_WARNING, token_hash};
pub use web::{ExtraRoutes, WebConfig};
