//! Installs agents from npm, `PyPI` and archives into the folder that [`crate::installed`] describes.
//!
//! [`InstallPlan::resolve`] asks the registry for exact versions and composes the command lines, which changes nothing;
//! [`InstallPlan::execute`] runs them. The package managers are those of the user, with the user's registry and proxy.
//!
//! **Invariant:** nothing outside the agent's folder is written, except for the caches of the package managers. Install
//! scripts, which could write anywhere, are run only for packages whose description requires it, and source packages of
//! `PyPI`, which run code when they are built, are refused.
//!
//! **Invariant:** the version in use changes only after the new one has started.

mod archive;
mod command;
mod error;
mod execute;
mod npm;
mod plan;
mod pypi;

pub use command::InstallCommand;
pub use error::InstallError;
pub use execute::InstallEvents;
pub use plan::{InstallPlan, PlanState};
