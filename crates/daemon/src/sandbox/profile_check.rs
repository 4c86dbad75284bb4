//! Tries to leave the sandbox of a profile, with the profiles and the network proxy that agents get.

use super::{launch_needs::parse_host_rules, proxy_thread::ProxyThread, read_profiles};
use crate::paths::Paths;
use jackfield_hub::AgentId;
use jackfield_network_proxy::ProxyConfig;
use jackfield_sandbox::{
    check::{CheckError, LayerCheck, SandboxChecker},
    os::{LayerProblem, layer_support},
    plan::EnforcementLayer,
    probes::{PROBES, SandboxProbe},
    profile::{NetworkAccess, SandboxProfile},
};
use std::{cell::RefCell, io, path::Path};
use tokio::sync::mpsc;

/// The probes of a profile on all layers of this machine.
#[derive(Debug)]
pub struct ProfileCheck {
    pub profile: String,
    pub layers: Vec<CheckedLayer>,
}

/// A layer, and what was found out about it.
#[derive(Debug)]
pub struct CheckedLayer {
    /// `None` for a profile that limits nothing.
    pub layer: Option<EnforcementLayer>,
    pub state: LayerState,
}

#[derive(Debug)]
pub enum LayerState {
    Checked {
        version: String,
        check: LayerCheck,
    },
    /// It does not work on this machine.
    Unavailable(LayerProblem),
    /// The sandbox of the profile was not started.
    Failed(CheckError),
}

/// Which layers and probes are used.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckScope {
    /// Without it, every layer is checked.
    pub layer: Option<EnforcementLayer>,
    /// Only a few probes, and only the first layer that works.
    pub is_short: bool,
}

/// The check could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProfileCheckError {
    #[error("{0}")]
    Profiles(String),
    #[error("there is no sandbox profile `{name}`")]
    UnknownProfile { name: String, known: Vec<String> },
    #[error("the probes could not be run without a sandbox")]
    Control(#[source] CheckError),
}

/// Makes the attempts of the list without a sandbox and on each layer.
pub fn check_profile(
    paths: &Paths,
    program: &Path,
    name: &str,
    scope: CheckScope,
) -> Result<ProfileCheck, ProfileCheckError> {
    let profiles = read_profiles(paths).map_err(ProfileCheckError::Profiles)?;
    let profile = profiles.find(name).ok_or_else(|| ProfileCheckError::UnknownProfile {
        name: name.to_owned(),
        known: profiles.names().map(str::to_owned).collect(),
    })?;
    let (questions, _refused) = mpsc::channel(1);
    let proxies = RefCell::new((ProxyThread::new(questions), AgentId(0)));
    let serve_proxy = |socket: &Path| serve_proxy(&proxies, socket, profile);
    let is_tried = |it: &&SandboxProbe| it.is_short || !scope.is_short;
    let checker = SandboxChecker {
        program: program.to_owned(),
        probes: PROBES.iter().filter(is_tried).collect(),
        serve_proxy: &serve_proxy,
    };
    let layers = check_layers(&checker, profile, scope).map_err(ProfileCheckError::Control)?;
    Ok(ProfileCheck { profile: name.to_owned(), layers })
}

fn check_layers(
    checker: &SandboxChecker<'_>,
    profile: &SandboxProfile,
    scope: CheckScope,
) -> Result<Vec<CheckedLayer>, CheckError> {
    let control = checker.run_control()?;
    if profile.is_unrestricted() {
        let check = checker.judge_control(profile, None, &control)?;
        let state = LayerState::Checked { version: String::new(), check };
        return Ok(vec![CheckedLayer { layer: None, state }]);
    }
    let mut layers = Vec::new();
    for support in layer_support().iter().filter(|it| scope.layer.is_none_or(|l| l == it.layer)) {
        let state = match &support.state {
            Err(problem) => LayerState::Unavailable(problem.clone()),
            Ok(version) => match checker.check_layer(profile, support.layer, &control) {
                Ok(check) => LayerState::Checked { version: version.clone(), check },
                Err(error) => LayerState::Failed(error),
            },
        };
        let is_last = scope.is_short && !matches!(state, LayerState::Unavailable(_));
        layers.push(CheckedLayer { layer: Some(support.layer), state });
        if is_last {
            break;
        }
    }
    Ok(layers)
}

/// Serves the hosts of the profile. There is no user who could be asked about others.
fn serve_proxy(
    proxies: &RefCell<(ProxyThread, AgentId)>,
    socket: &Path,
    profile: &SandboxProfile,
) -> io::Result<()> {
    let NetworkAccess::Hosts(hosts) = &profile.network else { return Ok(()) };
    let rules = parse_host_rules(hosts, &[]).map_err(io::Error::other)?;
    let (proxies, agent) = &mut *proxies.borrow_mut();
    agent.0 += 1;
    proxies.start(*agent, socket, ProxyConfig::new(rules))
}
