//! The web server: a thread beside the loop that serves HTTP and connects to the hub's own socket,
//! as any client does.

use crate::{
    boot_error::BootError,
    daemon_options::DaemonOptions,
    metrics::MetricsSource,
    tenants::Tenants,
    web_routes::{FleetHosts, WebConfig},
};
use jackfield_transport::{ClientAuthenticator, EndpointAddress, HubDialer};
use jackfield_web::{
    acp::acp_routes,
    console::console_routes,
    http::{RequestGuard, Router, TenantRoutes, WebListener, serve_http},
    login::DeviceLogins,
};
use std::{io, sync::Arc, thread::JoinHandle};
use tokio::sync::oneshot;

/// The running web server.
pub(crate) struct WebServer {
    /// The addresses that it listens on.
    pub(crate) addresses: Vec<EndpointAddress>,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl WebServer {
    /// Stops the server after the hub has closed all clients. Remaining responses are given a
    /// moment to arrive, while the hub's side continues.
    pub(crate) async fn finish(self) {
        drop(self.stop);
        // A panic of the thread was already reported by the panic hook.
        let _ignored = self.ended.await;
        let _ignored = self.thread.join();
    }
}

/// What a web server is started from.
#[derive(Clone)]
pub(crate) struct WebContext {
    pub(crate) options: DaemonOptions,
    pub(crate) authenticator: ClientAuthenticator,
    /// The logins of browsers, which all addresses share.
    pub(crate) logins: Arc<DeviceLogins>,
    pub(crate) tenants: Option<Arc<Tenants>>,
    pub(crate) metrics: MetricsSource,
    pub(crate) hosts: Option<FleetHosts>,
}

/// Opens the logins in the state directory.
pub(crate) fn open_logins(
    options: &DaemonOptions,
    authenticator: &ClientAuthenticator,
    tenants: Option<Arc<Tenants>>,
) -> Arc<DeviceLogins> {
    let find_tenant = move |name: &str| tenants.as_ref()?.identity(name);
    let path = options.paths.devices();
    Arc::new(DeviceLogins::new(&path, authenticator.clone(), Arc::new(find_tenant)))
}

/// Opens the addresses and starts the thread; `None` if there are none.
pub(crate) fn start_web(
    addresses: &[EndpointAddress],
    context: WebContext,
) -> Result<Option<WebServer>, BootError> {
    if addresses.is_empty() {
        return Ok(None);
    }
    let WebContext { options, authenticator, logins, tenants, metrics, hosts } = context;
    let (http, certificate) = (&options.settings.http, options.settings.http.certificate());
    let bind = |address: &EndpointAddress| {
        let bind = if options.insecure { WebListener::bind_insecure } else { WebListener::bind };
        bind(address, certificate.as_ref())
            .map_err(|source| BootError::Listen { address: address.clone(), source })
    };
    let listeners: Vec<WebListener> = addresses.iter().map(bind).collect::<Result<_, _>>()?;
    let addresses = listeners.iter().map(|it| it.address().clone()).collect();
    let hub = EndpointAddress::Unix(options.paths.socket());
    let extra_routes = options.routes.clone();
    let routes = move |config: WebConfig| {
        acp_routes(&config.hub)
            .merge(console_routes())
            .merge(extra_routes.as_ref().map_or_else(Router::new, |it| it.create_routes(config)))
    };
    let (dialer, metrics) = (hub.clone().into(), Some(metrics));
    let tenant_logins = logins.clone();
    let operator_config = WebConfig {
        hub: dialer,
        metrics,
        logins: logins.clone(),
        tenant: None,
        hosts: hosts.clone(),
    };
    let routes = TenantRoutes::new(routes(operator_config), move |identity| {
        let tenant = tenants.as_ref().and_then(|it| it.tenant(&identity.name));
        let hub = HubDialer::new(hub.clone(), Some(identity.clone()));
        let (logins, hosts) = (tenant_logins.clone(), hosts.clone());
        routes(WebConfig { hub, metrics: None, logins, tenant, hosts })
    });
    let guard =
        RequestGuard { authenticator, logins, hosts: http.hosts(), origins: http.origins() };
    let system_error = |what| move |source: io::Error| BootError::System { what, source };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system_error("the web server's runtime"))?;
    let ((stop, stopped), (ended_tx, ended)) = (oneshot::channel::<()>(), oneshot::channel());
    let stopped = async {
        let _ignored = stopped.await;
    };
    let thread = std::thread::Builder::new().name("web".into());
    let thread = thread
        .spawn(move || {
            runtime.block_on(async {
                if let Err(error) = serve_http(listeners, guard, routes, stopped).await {
                    tracing::error!(%error, "web server failed");
                }
            });
            // Closes the remaining connections.
            drop(runtime);
            let _ignored = ended_tx.send(());
        })
        .map_err(system_error("a thread"))?;
    Ok(Some(WebServer { addresses, stop, ended, thread }))
}
