//! The environment variables of a sandboxed process.

use crate::{plan::SandboxPlan, profile::matches_name};
use std::{ffi::OsString, net::SocketAddr};

/// Contains the name of the profile inside a sandbox. Adapters turn off the sandboxes of their programs if it is set,
/// because those cannot be started inside another one.
pub const PROFILE_VARIABLE: &str = "JACKFIELD_SANDBOX_PROFILE";
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const DIRECT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
const LOOPBACK_NAMES: &str = "localhost,127.0.0.1,::1";

/// The variables whose names a plan permits, and the one that names its profile.
pub(crate) fn process_variables(
    plan: &SandboxPlan,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsString| {
        let is_permitted = |name: &str| plan.env.iter().any(|it| matches_name(it, name));
        name != PROFILE_VARIABLE && name.to_str().is_some_and(is_permitted)
    };
    let mut kept: Vec<(OsString, OsString)> = variables.filter(|(name, _)| is_kept(name)).collect();
    kept.push((PROFILE_VARIABLE.into(), plan.profile.clone().into()));
    kept
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
    use crate::plan::{EnforcementLayer, NetworkPlan, ResourceLimits};

    #[test]
    fn environment_is_limited_to_the_names_of_the_plan() {
        let plan = SandboxPlan {
            profile: "workspace".to_owned(),
            layer: EnforcementLayer::Bubblewrap,
            paths: Vec::new(),
            links: Vec::new(),
            env: vec!["PATH".to_owned(), "LC_*".to_owned(), "JACKFIELD_*".to_owned()],
            network: NetworkPlan::None,
            proxies_loopback: false,
            limits: ResourceLimits::default(),
            unprotected: Vec::new(),
        };
        let variables = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET", "x"),
            ("MYPATH", "y"),
            (PROFILE_VARIABLE, "of the user"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let kept = process_variables(&plan, variables.into_iter());
        let kept: Vec<_> = kept.iter().map(|(name, it)| (name.to_str(), it.to_str())).collect();
        let expected = [("PATH", "/bin"), ("LC_ALL", "C"), (PROFILE_VARIABLE, "workspace")];
        assert_eq!(kept, expected.map(|(name, it)| (Some(name), Some(it))));
    }
}
