//! An HTTP proxy that lets a sandboxed process reach named hosts only.
//!
//! The process has no network. It reaches the proxy through a Unix socket, with `CONNECT` for TLS and with
//! complete URLs for plain HTTP. For each request the proxy
//!
//! 1. brings the host into one canonical form (`target_host`) and compares the headers with it (`request_target`),
//! 2. decides by the rules (`host_rules`), or asks the user (`host_questions`),
//! 3. resolves the name and checks each address (`host_access`),
//! 4. connects to an address that was checked, without another query.
//!
//! Invariants: no name is resolved before it is allowed. No connection is made to an address that was not checked.
//! A secret of a [`HeaderInjection`] is sent over TLS only, and to its host only. Each decision is reported.

mod address_class;
mod client_connection;
mod counted_stream;
mod forwarded_headers;
mod header_injection;
mod host_access;
mod host_pattern;
mod host_questions;
mod host_resolver;
mod host_rules;
mod limits;
mod proxy_report;
mod proxy_server;
mod request_failure;
mod request_target;
mod target_host;
mod upstream;

pub use address_class::AddressClass;
pub use header_injection::{
    CredentialInjection, HeaderInjection, InjectionError, system_tls_config, tls_config_with_roots,
};
pub use host_pattern::{HostPattern, PatternError};
pub use host_questions::{HostAnswer, HostQuestion};
pub use host_resolver::{HostResolver, ResolvedAddresses, SystemResolver};
pub use host_rules::{HostRule, HostRules, RuleDecision};
pub use limits::ProxyLimits;
pub use proxy_report::{AllowReason, ProxyReport, ProxyVerdict, RefusalReason};
pub use proxy_server::{ProxyConfig, serve_proxy};
pub use target_host::{HostError, HostPort, TargetHost};
