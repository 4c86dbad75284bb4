//! The catalog of agents: what a program is called, how it is started, what it needs and what its
//! users should know about it. This crate is pure: it parses text into values and does no I/O.
//!
//! Read in this order: [`AgentSpec`] describes one agent, [`parse_agent_spec`] reads one from a
//! TOML file, [`Catalog`] holds the built-in agents and the user's, [`LaunchVariant::compose_argv`]
//! composes a command line and [`EnvRules::compose_environment`] an environment, [`parse_models`]
//! reads a program's list of models, and [`import_registry`] imports agents from an ACP registry.
//!
//! **Invariant:** a value from outside (a prompt, a model's id, a session's id) becomes at most one
//! argument, and never one that the program could parse as an option.
//!
//! **Invariant:** an invalid file disables only itself, and is reported with its line and the
//! reason.

mod argv;
mod builtin;
mod catalog;
mod check;
mod check_archives;
mod check_packages;
mod environment;
mod error;
mod install_advice;
mod models;
mod package;
mod parse;
mod placeholder;
mod registry;
mod spec;
mod variant;
mod violation;

pub use argv::{LaunchError, LaunchOptions, check_model, check_reasoning};
pub use catalog::{AgentFileError, Catalog};
pub use check::DIALECTS;
pub use environment::EnvRules;
pub use error::CatalogError;
pub use install_advice::InstallAdvice;
pub use models::{ModelEntry, parse_models};
pub use package::{AgentPackage, PackageArchive, current_platform};
pub use parse::parse_agent_spec;
pub use registry::{RegistryImport, SkippedEntry, import_registry};
pub use spec::VersionProbe;
pub use spec::{
    AgentQuirk, AgentSpec, AuthProbe, ModelFormat, ModelSettings, ModelSource, SandboxNeeds,
};
pub use variant::{LaunchVariant, OptionalFlag, PermissionMode, PromptDelivery};

/// The id of the option that leaves the choice to the program.
pub const DEFAULT_OPTION: &str = "default";
