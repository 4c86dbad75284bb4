//! How names become addresses.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The addresses of a name, later.
pub type ResolvedAddresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name. It is called once for each connection, and only for names that are allowed:
/// a query would carry the name to a server of its owner.
pub trait HostResolver: Send + Sync {
    fn resolve_name(&self, name: &str) -> ResolvedAddresses;
}

/// The resolver of this machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    fn resolve_name(&self, name: &str) -> ResolvedAddresses {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    }
}
