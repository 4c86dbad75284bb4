//! The web front: a thread beside the loop that speaks HTTP to clients, and reaches the hub by the
//! hub's own socket, as any client does.

use crate::{
    metrics::Metrics,
    serve::{BootError, Options},
    tenants::Tenants,
};
use jackfield_fleet::HostEntry;
use jackfield_hub::Tenant;
use jackfield_transport::{Authenticator, EndpointAddress, HubDialer};
use jackfield_web::{
    acp::acp_routes,
    http::{RequestGuard, Router, TenantRoutes, WebListener, serve_http},
};
use std::{fmt, io, sync::Arc, thread::JoinHandle};
use tokio::sync::{oneshot, watch};

/// What the routes of the API are made from.
#[derive(Debug, Clone)]
pub struct Front {
    /// The hub, to be dialled.
    pub hub: HubDialer,
    /// Not for tenants: it is about everybody.
    pub metrics: Option<Metrics>,
    /// Whose routes these are.
    pub tenant: Option<Arc<Tenant>>,
    /// If sessions are placed on the hosts of a fleet: these.
    pub hosts: Option<watch::Receiver<Arc<Vec<HostEntry>>>>,
}

/// Makes the routes that are served beside the protocol itself.
#[derive(Clone)]
pub struct Routes(Arc<dyn Fn(Front) -> Router + Send + Sync>);

impl Routes {
    pub fn new(make: impl Fn(Front) -> Router + Send + Sync + 'static) -> Routes {
        Routes(Arc::new(make))
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Routes")
    }
}

/// The front while it runs.
pub(crate) struct Web {
    /// Where it listens.
    pub(crate) addresses: Vec<EndpointAddress>,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Web {
    /// Ends it, when the hub has hung up on everyone: what they are still to hear has a moment to
    /// arrive. The hub's side of it goes on meanwhile.
    pub(crate) async fn finish(self) {
        drop(self.stop);
        // The thread has nothing to say; a panic there was already reported by the panic hook.
        let _ended = self.ended.await;
        let _joined = self.thread.join();
    }
}

/// Opens the addresses and starts the thread; `None` if there are none.
pub(crate) fn start(
    addresses: &[EndpointAddress],
    options: &Options,
    keys: &Authenticator,
    tenants: Option<&Arc<Tenants>>,
    metrics: Metrics,
    hosts: Option<watch::Receiver<Arc<Vec<HostEntry>>>>,
) -> Result<Option<Web>, BootError> {
    if addresses.is_empty() {
        return Ok(None);
    }
    let (http, certificate) = (&options.settings.http, options.settings.http.certificate());
    let bind = |address: &EndpointAddress| {
        WebListener::bind(address, certificate.as_ref())
            .map_err(|source| BootError::Listen { address: address.clone(), source })
    };
    let doors: Vec<WebListener> = addresses.iter().map(bind).collect::<Result<_, _>>()?;
    let addresses = doors.iter().map(|it| it.address().clone()).collect();
    let hub = EndpointAddress::Unix(options.paths.socket());
    let more = options.routes.clone();
    let routes = move |front: Front| {
        let protocol = acp_routes(&front.hub);
        protocol.merge(more.as_ref().map_or_else(Router::new, |it| (it.0)(front)))
    };
    let (dialer, metrics) = (hub.clone().into(), Some(metrics));
    let own = Front { hub: dialer, metrics, tenant: None, hosts: hosts.clone() };
    let tenants = tenants.cloned();
    let routes = TenantRoutes::new(routes(own), move |guest| {
        let tenant = tenants.as_ref().and_then(|it| it.tenant(&guest.name));
        let hub = HubDialer::new(hub.clone(), Some(guest.clone()));
        routes(Front { hub, metrics: None, tenant, hosts: hosts.clone() })
    });
    let porter =
        RequestGuard { authenticator: keys.clone(), hosts: http.hosts(), origins: http.origins() };
    let system = |what| move |source: io::Error| BootError::System { what, source };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("the web front's runtime"))?;
    let ((stop, stopped), (ends, ended)) = (oneshot::channel::<()>(), oneshot::channel());
    let stopped = async {
        let _told = stopped.await;
    };
    let thread = std::thread::Builder::new().name("web".into());
    let thread = thread
        .spawn(move || {
            runtime.block_on(async {
                if let Err(error) = serve_http(doors, porter, routes, stopped).await {
                    tracing::error!(%error, "the web front has ended");
                }
            });
            // Whoever is still connected is cut off now.
            drop(runtime);
            let _unheard = ends.send(());
        })
        .map_err(system("a thread"))?;
    Ok(Some(Web { addresses, stop, ended, thread }))
}
