//! Policy rules for permission requests: allow, ask, deny. This crate is pure: it takes texts and
//! values and returns a decision; it never accesses the machine.
//!
//! Read in this order: [`Rule`] is one rule, [`parse_policy`] turns a TOML file into a [`Policy`],
//! [`ToolCallFacts`] is what an agent asks for, normalized from the agent's own format,
//! [`ShellCommand`] is a command line and what it runs, [`evaluate_rules`] applies the rules,
//! [`select_option`] picks one of the options that the agent offers, [`learn_rule`] derives the
//! rule that an "always" answer creates, and [`describe_learned_rule`] describes that rule to the
//! user before they confirm it. [`ApprovalMode`] answers requests that no rule decides.
//!
//! **Invariant:** an allow needs certainty and a deny does not: a command that cannot be analyzed
//! for certain is never allowed by a rule about commands, and is still searched by rules that deny
//! or ask.
//!
//! **Invariant:** a deny wins over every allow and ask of every scope, and an ask rule in a file
//! wins over a learned allow rule.
//!
//! **Invariant:** every part of a call that may be a command or a path is judged; no part of it is
//! left out.
//!
//! **Invariant:** an automatic answer is one of the options that were offered. It is a permanent
//! grant only if a rule gives one, or if the user approved everything and no smaller grant is
//! offered.

mod approval;
mod call;
mod evaluate;
mod glob;
mod learn;
mod member;
mod parse;
mod policy_error;
mod policy_set;
mod rule;
mod select_option;
mod shell;
mod touched_paths;

pub use approval::{ApprovalDecision, ApprovalMode, allow_once, deny_once, turn_failure};
pub use call::ToolCallFacts;
pub use evaluate::{PolicyDecision, evaluate_rules};
pub use learn::{command_prefix, describe_learned_rule, learn_rule};
pub use member::is_member_name;
pub use parse::{TOOL_KINDS, parse_policy, parse_project_policy};
pub use policy_error::PolicyError;
pub use policy_set::PolicySet;
pub use rule::{GrantDuration, Policy, Rule, RuleEffect, RuleScope};
pub use select_option::select_option;
pub use shell::{AnalysisSize, ShellCommand};
