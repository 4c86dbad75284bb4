//! Jackfield as its users meet it: the real binary, real agents, real sockets, real signals.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod adapt;
mod agent;
mod api;
mod asks;
mod attacker;
mod bus;
mod bytes;
mod catalogue;
mod chaos;
mod clis;
mod damage;
mod editor;
mod fleet;
mod fork;
mod goose;
mod idle;
mod kill_agent;
mod kill_client;
mod kill_daemon;
mod kill_moments;
mod live;
mod liveness;
mod load;
mod many_sessions;
mod matrix_cancel;
mod matrix_resume;
mod notify;
mod policy;
mod pools;
mod queue;
mod real_model;
mod recipes;
mod resume_http;
mod runner;
mod sdk;
mod sdk_client;
mod sdk_web;
mod secrets;
mod served;
mod sleep;
mod slow_client;
mod traffic;
mod transports;
mod typescript;
