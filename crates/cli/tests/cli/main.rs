//! The command from outside: exit code, stdout and stderr of each verb, each help and each error,
//! against a scripted hub or a real daemon in a home of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acp;
mod agents;
mod answer;
mod archive;
mod asks;
mod attach;
mod daemon;
mod errors;
mod fake_hub;
mod help;
mod home;
mod interactive;
mod lists;
mod log;
mod policy;
mod queue;
mod retold;
mod run;
mod terminal;
mod wishes;
