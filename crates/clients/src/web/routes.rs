//! What is served, and to whom: everyone who comes in another name has routes of its own, so that nothing
//! they keep between two requests is anybody else's.

use super::limits;
use crate::keys::Guest;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

type Service = TowerToHyperService<Router>;

/// The operator's routes, and how those of a guest are made.
pub struct Routes {
    own: Service,
    make: Arc<dyn Fn(&Guest) -> Router + Send + Sync>,
    /// By name. One that is bound otherwise than before begins anew.
    guests: Mutex<BTreeMap<Arc<str>, (Guest, Service)>>,
}

impl Routes {
    pub fn new(own: Router, make: impl Fn(&Guest) -> Router + Send + Sync + 'static) -> Routes {
        Routes { own: service(own), make: Arc::new(make), guests: Mutex::default() }
    }

    pub(super) fn of(&self, guest: Option<&Guest>) -> Service {
        let Some(guest) = guest else { return self.own.clone() };
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        match guests.get(&guest.name) {
            Some((known, routes)) if known == guest => routes.clone(),
            _ => {
                let routes = service((self.make)(guest));
                guests.insert(guest.name.clone(), (guest.clone(), routes.clone()));
                routes
            }
        }
    }
}

/// Routes that no guest is let in to: nobody vouches for any.
impl From<Router> for Routes {
    fn from(own: Router) -> Routes {
        Routes::new(own, |_| Router::new())
    }
}

fn service(routes: Router) -> Service {
    TowerToHyperService::new(routes.layer(DefaultBodyLimit::max(limits::API_BODY_BYTES_MAX)))
}
