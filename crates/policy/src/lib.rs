//! Rules about what agents ask permission for: allow, ask, deny. Pure: texts and values in, a
//! decision out; nothing here looks at the machine.
//!
//! Read in this order: [`Rule`] is one rule, [`parse`] makes a [`Policy`] of a TOML file, [`Call`]
//! is what an agent asks for in whatever words it has, [`Shell`] what a command line runs,
//! [`decide`] asks the rules, [`option`] picks among what the agent offers, [`learn`] says what an
//! Always means, and [`learned_text`] tells it to people before they confirm it.
//!
//! **Invariant:** an allow is certain and a deny is not: what cannot be read for sure is never
//! allowed by a rule about commands, and is searched by those that deny or ask.
//!
//! **Invariant:** a deny wins over every allow and ask of every scope, and an ask that stands in a
//! file wins over an allow that was learned.
//!
//! **Invariant:** everything in a call that may be a command or a path is judged; no part of it is
//! picked.
//!
//! **Invariant:** an answer is one of the options that were offered, and never a permanent grant
//! that no rule gave.

mod call;
mod decide;
mod flaw;
mod glob;
mod learn;
mod member;
mod offer;
mod parse;
mod policies;
mod rule;
mod shell;
mod touch;

pub use call::Call;
pub use decide::{Decision, decide};
pub use flaw::Flaw;
pub use learn::{gist, learn, learned_text};
pub use member::is_name_of;
pub use offer::option;
pub use parse::{KINDS, parse, parse_project};
pub use policies::Policies;
pub use rule::{Effect, Grant, Policy, Rule, Scope};
pub use shell::{ReadingSize, Shell};
