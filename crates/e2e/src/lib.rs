//! The real binary under test: its folders, its daemon, its clients, and the processes it leaves.
//!
//! Read in this order: [`home`] (one Jackfield installation in a folder of its own), [`client`] (a plain ACP client over a
//! socket or pipes), [`http`] (the same over HTTP), [`cli`] (real agents), [`real_model`] (a real model), [`app`] (a program
//! that uses the client package), [`procs`] (running processes), [`wait`] (conditions with a timeout).

pub mod acp;
pub mod app;
pub mod cli;
pub mod client;
pub mod home;
pub mod http;
pub mod procs;
pub mod proxy;
pub mod real_model;
pub mod wait;

pub use app::App;
pub use cli::Cli;
pub use client::Client;
pub use home::{Daemon, Home};
pub use http::Web;
pub use jackfield_test_support::wait::wait_for;
pub use real_model::RealModel;
pub use wait::assert_takes_less;
