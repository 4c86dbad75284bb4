//! The catalogue of agents: what a program is called, how it is started, what it needs and what
//! people should know about it. Pure: text in, values out; nothing here looks at the machine.
//!
//! Read in this order: [`Spec`] is one agent, [`parse`] makes one of a TOML file, [`Catalogue`] holds
//! ours and the user's, [`Variant::argv`] composes a command line, [`EnvRules::compose`] an
//! environment, [`parse_models`] reads what a program prints about its models, [`import_registry`]
//! takes agents over from an ACP registry.
//!
//! **Invariant:** a value that came from outside (a prompt, a model's id, a session's id) is at most
//! one argument, and never one that the program could take for an option.
//!
//! **Invariant:** a bad file disables only itself, and is reported with its line and the reason.

mod argv;
mod builtin;
mod catalogue;
mod check;
mod environment;
mod flaw;
mod models;
mod parse;
mod placeholder;
mod registry;
mod spec;
mod variant;

pub use argv::{Choice, Refusal, check_model, check_reasoning};
pub use catalogue::{Catalogue, FileFlaw};
pub use check::DIALECTS;
pub use environment::EnvRules;
pub use flaw::Flaw;
pub use models::{Model, parse_models};
pub use parse::parse;
pub use registry::{Imported, Skipped, import_registry};
pub use spec::{AuthProbe, ModelFormat, Models, ModelsFrom, Quirk, Spec, VersionProbe};
pub use variant::{Flag, Mode, PromptBy, Variant};

/// The choice that means: say nothing, and let the program decide.
pub const DEFAULT: &str = "default";
