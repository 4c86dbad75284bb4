//! The HTTP client that all requests are sent with.

use reqwest::{Client, ClientBuilder};

/// Returns a builder with our TLS provider and user agent. Callers set redirects and limits.
pub(crate) fn client_builder() -> ClientBuilder {
    // This fails if a provider was installed before, which is fine.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(concat!("jackfield/", env!("CARGO_PKG_VERSION")))
}
