//! One file per verb: a struct whose doc is the help, and what it does.

pub(crate) mod acp;
pub(crate) mod adapt;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod asks;
pub(crate) mod attach;
pub(crate) mod bugreport;
pub(crate) mod bus;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod guard;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod ps;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod trust;
