//! Addresses that are opened while the daemon runs, by `jackfield listen`.

use crate::{
    listeners::accept_clients,
    web::{self, WebContext, WebServer},
};
use jackfield_hub::ListenerChange;
use jackfield_protocol::{Fault, chain};
use jackfield_transport::{ClientListener, ClientStream, EndpointAddress, UNENCRYPTED_WARNING};
use jackfield_web::login::DeviceLogins;
use serde_json::json;
use std::sync::Arc;
use tokio::{sync::mpsc, task::AbortHandle};

/// What an address needs to be opened as at the start of the daemon.
pub(crate) struct ListenerContext {
    pub(crate) web: WebContext,
    pub(crate) accepted: mpsc::Sender<ClientStream>,
}

/// The addresses of the daemon, and how to add some.
pub(crate) struct AddedListeners {
    context: ListenerContext,
    /// The addresses that were opened at the start.
    initial: Vec<EndpointAddress>,
    added: Vec<(EndpointAddress, ListenerHandle)>,
}

/// How an added address is closed.
enum ListenerHandle {
    Clients(AbortHandle),
    Web(WebServer),
}

impl AddedListeners {
    pub(crate) fn new(context: ListenerContext, initial: Vec<EndpointAddress>) -> AddedListeners {
        AddedListeners { context, initial, added: Vec::new() }
    }

    /// The browsers that have logged in.
    pub(crate) fn logins(&self) -> Arc<DeviceLogins> {
        self.context.web.logins.clone()
    }

    /// Whether an address was added. The daemon then does not stop when it is idle.
    pub(crate) fn is_any_added(&self) -> bool {
        !self.added.is_empty()
    }

    /// Changes the addresses and returns them as JSON.
    pub(crate) fn apply_change(&mut self, change: &ListenerChange) -> Result<String, Fault> {
        let changed = match change {
            ListenerChange::None => None,
            ListenerChange::Add { address, insecure } => {
                Some(self.add_address(address, *insecure)?)
            }
            ListenerChange::Remove { address } => Some(self.remove_address(address)?),
        };
        let initial = self.initial.iter().map(|it| (it, false));
        let added = self.added.iter().map(|(it, _)| (it, true));
        let to_json = |(address, is_added): (&EndpointAddress, bool)| json!({ "address": address.to_string(), "added": is_added });
        let listeners: Vec<_> = initial.chain(added).map(to_json).collect();
        let changed = changed.map(|it| it.to_string());
        Ok(json!({ "listeners": listeners, "changed": changed }).to_string())
    }

    fn add_address(&mut self, text: &str, insecure: bool) -> Result<EndpointAddress, Fault> {
        let address = parse_address(text)?;
        let failed = |error: &dyn std::error::Error| invalid(chain(error));
        let insecure = insecure || self.context.web.options.insecure;
        let (address, handle) = if address.is_web() {
            let server = self.start_web(address, insecure)?;
            let bound = server.addresses.first().cloned();
            (bound.expect("the server has one address"), ListenerHandle::Web(server))
        } else {
            let authenticator = Some(&self.context.web.authenticator);
            let bound = match &address {
                EndpointAddress::Stdio => {
                    return Err(invalid("stdin and stdout belong to the daemon".to_owned()));
                }
                EndpointAddress::Tcp(at) if insecure => {
                    ClientListener::bind_insecure(*at, authenticator)
                }
                _ => ClientListener::bind(&address, authenticator),
            };
            let listener = bound.map_err(|error| failed(&error))?;
            let address = listener.address().clone();
            let accepting = accept_clients(listener, self.context.accepted.clone());
            (address, ListenerHandle::Clients(tokio::spawn(accepting).abort_handle()))
        };
        tracing::info!(%address, "listening on an added address");
        if address.require_private().is_err() {
            tracing::warn!(%address, "{UNENCRYPTED_WARNING}");
        }
        self.added.push((address.clone(), handle));
        Ok(address)
    }

    fn start_web(&self, address: EndpointAddress, insecure: bool) -> Result<WebServer, Fault> {
        let mut context = self.context.web.clone();
        context.options.insecure = insecure;
        let started = web::start_web(&[address], context);
        let server = started.map_err(|error| invalid(chain(&error)))?;
        Ok(server.expect("an address was passed"))
    }

    fn remove_address(&mut self, text: &str) -> Result<EndpointAddress, Fault> {
        let address = parse_address(text)?;
        let Some(index) = self.added.iter().position(|(it, _)| *it == address) else {
            let why = if self.initial.contains(&address) {
                format!(
                    "`{address}` was opened at the start of the daemon: restart the daemon without it"
                )
            } else {
                format!("the daemon does not listen on `{address}`")
            };
            return Err(invalid(why));
        };
        let (address, handle) = self.added.remove(index);
        match handle {
            ListenerHandle::Clients(accepting) => accepting.abort(),
            ListenerHandle::Web(server) => drop(tokio::spawn(server.finish())),
        }
        tracing::info!(%address, "closed an added address");
        Ok(address)
    }
}

fn parse_address(text: &str) -> Result<EndpointAddress, Fault> {
    text.parse().map_err(|error| invalid(chain(&error)))
}

fn invalid(why: String) -> Fault {
    Fault::InvalidParams { why }
}
