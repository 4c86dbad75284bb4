//! The daemon process around the hub: starts, recovers, listens, runs the loop, and stops.
//!
//! Read in this order: [`paths`], [`config`], `fleet_config` and `daemon_options` (configuration),
//! `lock`, `boot` and `boot_error` (start), `loop_builder` (building the loop), `main_loop` (one input
//! at a time), `effects` (carrying out the outputs of the hub), `append_queue` (batches for the
//! journal), `journal_inputs` (results of the journal), `agent_registry` (agents by name),
//! `agent_files` (the catalog and the agent files), [`policy_store`] (policy files), `served` (files
//! and terminals for agents without a client), `notify` (notifications), `observe` (log lines),
//! `recorder` (the last inputs, for failed assertions), `tenants` (the tenants file), `web` (the HTTP
//! thread), `fleet` (this daemon as a member of a fleet).
//!
//! - **Invariant:** one thread owns the hub and all its sockets and pipes. The journal's threads use
//!   channels to it, and the web server uses the hub's own socket.
//! - **Invariant:** the loop waits only for its channels.
//! - **Invariant:** after the start no error is returned: it becomes an input.

mod added_listeners;
mod agent_files;
mod agent_registry;
mod agent_start;
mod append_queue;
mod boot;
mod boot_error;
mod clock;
pub mod config;
mod copy;
mod daemon_options;
mod effects;
pub mod environment;
mod fleet;
mod fleet_config;
mod freed_memory;
mod journal_inputs;
mod listeners;
mod lock;
mod log_file;
mod log_repeats;
mod loop_builder;
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
mod sandbox;
mod serve;
mod served;
mod service_manager;
mod signals;
mod spawn_context;
mod tenants;
pub mod token;
mod web;
mod web_routes;

pub use agent_files::load_catalog;
pub use agent_registry::FIX_SEPARATOR;
pub use boot::clean_up;
pub use boot_error::{BootError, FleetError};
pub use config::Settings;
pub use daemon_options::{DaemonOptions, JournalChoice};
pub use fleet_config::{FleetConfig, LogMaintenanceConfig, MemberRole};
pub use jackfield_hub::{TENANT_NAME_RULE, Tenant, is_tenant_name};
pub use lock::{HolderProcess, LockHolder, find_holder};
pub use log_file::limit_log;
pub use metrics::MetricsSource;
pub use observe::{LogTarget, start_log};
pub use paths::Paths;
pub use sandbox::{
    CheckScope, CheckedLayer, HostAnswers, LayerState, ProfileCheck, ProfileCheckError,
    StoredHostAnswer, check_profile,
};
pub use serve::{DaemonReady, IsolatedHub, serve, start_isolated};
pub use tenants::{Tenants, TenantsError, UNCONFINED_AGENTS_WARNING, token_hash};
pub use web_routes::{ExtraRoutes, FleetHosts, WebConfig};
