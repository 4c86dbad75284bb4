//! How we ask servers over HTTP, whatever they serve.

use reqwest::{Client, ClientBuilder};

/// A client with our TLS and our name; redirects and limits are whoever asks to say.
pub(crate) fn client() -> ClientBuilder {
    // Somebody else in this process may have chosen one already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(concat!("jackfield/", env!("CARGO_PKG_VERSION")))
}
