//! Tests of the `jackfield` command: exit code, stdout and stderr of each command, help and error, with a scripted hub or
//! a real daemon in its own home directory.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod acp;
mod agents;
mod answer;
mod archive;
mod asks;
mod attach;
mod completion;
mod config;
mod daemon;
mod doctor;
mod errors;
mod fake_hub;
mod help;
mod home;
mod install;
mod install_archive;
mod interactive;
mod lists;
mod log;
mod names;
mod package_registry;
mod policy;
mod queue;
mod reconnect;
mod registry_agents;

mod run;
mod sandbox;
mod settings;
mod setup;
mod setup_readback;
mod terminal;
mod views;
