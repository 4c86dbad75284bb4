//! Environment variables that a sandboxed process needs.

use super::private_directory::PrivateDirectory;
use super::proxy_connection::PROXY_ADDRESS;
use crate::plan::NetworkPlan;
use std::ffi::OsString;
use std::path::PathBuf;

/// Variables that are added to those of this process.
pub(super) fn variables(
    network: &NetworkPlan,
    private: &[PrivateDirectory],
) -> Vec<(&'static str, OsString)> {
    let mut variables = match network {
        NetworkPlan::Proxy { .. } => proxy_variables(),
        NetworkPlan::None | NetworkPlan::All => Vec::new(),
    };
    let replacement =
        |path: PathBuf| private.iter().find(|it| it.replaces == path).map(|it| it.path.clone());
    let temporary = replacement(std::env::temp_dir()).or_else(|| replacement("/tmp".into()));
    variables.extend(temporary.map(|it| ("TMPDIR", it.into())));
    let caches = std::env::home_dir().and_then(|it| replacement(it.join(".cache")));
    variables.extend(caches.map(|it| ("XDG_CACHE_HOME", it.into())));
    variables
}

fn proxy_variables() -> Vec<(&'static str, OsString)> {
    let (ip, port) = PROXY_ADDRESS;
    let address = OsString::from(format!("http://{ip}:{port}"));
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    let mut variables: Vec<_> = names.map(|it| (it, address.clone())).into();
    // Every host goes through the proxy, also one that the variables of the user exclude.
    variables.extend(["NO_PROXY", "no_proxy"].map(|it| (it, OsString::new())));
    // Node.js uses the variables only if it is asked to.
    variables.push(("NODE_USE_ENV_PROXY", "1".into()));
    variables
}
