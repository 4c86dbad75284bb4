//! The environment variables of a sandboxed process.

use crate::profile::matches_name;
use std::{ffi::OsString, net::SocketAddr};

const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const DIRECT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
const LOOPBACK_NAMES: &str = "localhost,127.0.0.1,::1";

/// The variables whose names a plan permits.
pub(crate) fn kept_variables(
    permitted: &[String],
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsString| {
        name.to_str().is_some_and(|name| permitted.iter().any(|it| matches_name(it, name)))
    };
    variables.filter(|(name, _)| is_kept(name)).collect()
}

/// The variables that make programs use the proxy, for loopback addresses too if `proxies_loopback`.
pub(crate) fn proxy_variables(
    proxy: SocketAddr,
    proxies_loopback: bool,
) -> Vec<(&'static str, String)> {
    let address = format!("http://{proxy}");
    let direct = if proxies_loopback { "" } else { LOOPBACK_NAMES };
    let mut variables: Vec<_> = PROXY_VARIABLES.map(|it| (it, address.clone())).into();
    variables.extend(DIRECT_VARIABLES.map(|it| (it, direct.to_owned())));
    // Node.js uses the variables only if it is asked to.
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_limited_to_the_names_of_the_plan() {
        let variables = [("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET", "x"), ("MYPATH", "y")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let kept = kept_variables(&["PATH".into(), "LC_*".into()], variables.into_iter());
        let names: Vec<_> = kept.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "LC_ALL"]);
    }
}
