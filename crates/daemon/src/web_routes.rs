//! Additional HTTP routes, which another crate creates.

use crate::metrics::MetricsSource;
use jackfield_fleet::{FleetConnection, HostEntry};
use jackfield_hub::Tenant;
use jackfield_transport::HubDialer;
use jackfield_web::{http::Router, login::DeviceLogins};
use std::{fmt, sync::Arc};
use tokio::sync::watch;

/// What the additional routes are created from.
#[derive(Debug, Clone)]
pub struct WebConfig {
    /// Connects to the hub.
    pub hub: HubDialer,
    /// Not for tenants, since the metrics cover all tenants.
    pub metrics: Option<MetricsSource>,
    /// The browsers that have logged in.
    pub logins: Arc<DeviceLogins>,
    /// The tenant of these routes.
    pub tenant: Option<Arc<Tenant>>,
    /// The hosts, if sessions are placed on the hosts of a fleet.
    pub hosts: Option<FleetHosts>,
}

/// The hosts of a fleet, and a connection to send them requests.
#[derive(Debug, Clone)]
pub struct FleetHosts {
    pub hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub connection: FleetConnection,
}

/// Creates the routes that are served beside ACP.
#[derive(Clone)]
pub struct ExtraRoutes(Arc<dyn Fn(WebConfig) -> Router + Send + Sync>);

impl ExtraRoutes {
    pub fn new(create_routes: impl Fn(WebConfig) -> Router + Send + Sync + 'static) -> ExtraRoutes {
        ExtraRoutes(Arc::new(create_routes))
    }

    pub(crate) fn create_routes(&self, config: WebConfig) -> Router {
        (self.0)(config)
    }
}

impl fmt::Debug for ExtraRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtraRoutes")
    }
}
