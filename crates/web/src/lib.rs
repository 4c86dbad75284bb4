//! The web server of a daemon: ACP over WebSocket and HTTP, a REST API, and the HTTP server below them.
//!
//! Read in this order: [`http`] accepts connections and requests, [`acp`] has the routes of ACP, [`rest`]
//! the routes of the REST API and its `OpenAPI` document, [`console`] the pages of the web console.
//! [`login`] authenticates their browsers, [`push`] prepares notifications for them.
//!
//! The web server is only a client of the hub: for each of its own clients it connects to the daemon's socket.

#![expect(
    unused_qualifications,
    reason = "the descriptions of routes name our types by their whole path"
)]

pub mod acp;
pub mod console;
pub mod http;
pub mod login;
pub mod push;
pub mod rest;
