//! The hosts of a fleet for the REST API.

use jackfield_daemon::FleetHosts;
use jackfield_fleet::{HostEntry, HostInstance, HostRequest, HostResponse};
use jackfield_web::rest::{FleetControl, FleetHost, HostState};
use std::{sync::Arc, time::Duration};

/// How long a host may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lists the hosts. Only the operator may drain them.
pub(crate) fn fleet_control(fleet: &FleetHosts, is_operator: bool) -> FleetControl {
    let hosts = fleet.hosts.clone();
    let list_hosts = Arc::new(move || hosts.borrow().iter().map(describe_host).collect());
    if !is_operator {
        return FleetControl { list_hosts, set_draining: None };
    }
    let fleet = fleet.clone();
    FleetControl {
        list_hosts,
        set_draining: Some(Arc::new(move |name, is_draining| {
            let fleet = fleet.clone();
            Box::pin(async move { set_draining(&fleet, &name, is_draining).await })
        })),
    }
}

fn describe_host(entry: &HostEntry) -> FleetHost {
    FleetHost {
        name: entry.host.name.to_string(),
        state: if entry.draining { HostState::Draining } else { HostState::Online },
        version: entry.version.clone(),
        sessions: entry.sessions,
        running: entry.live,
        free: entry.free,
        agents: entry.agents.clone(),
        labels: entry.labels.clone(),
    }
}

async fn set_draining(fleet: &FleetHosts, name: &str, is_draining: bool) -> Result<u32, String> {
    let host: Option<HostInstance> =
        fleet.hosts.borrow().iter().map(|it| &it.host).find(|it| &*it.name == name).cloned();
    let Some(host) = host else { return Err(format!("host `{name}` is gone")) };
    let request = HostRequest::SetDraining(is_draining);
    match fleet.connection.send_request(&host, &request, RESPONSE_TIMEOUT).await {
        Ok(HostResponse::SessionsLeft(left)) => Ok(left),
        Ok(other) => Err(format!("host `{name}` answered {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}
