//! The routes of the operator and of each tenant. Each tenant has routes of its own, so that no
//! state between two requests is shared with others.

use super::limits;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use hyper_util::service::TowerToHyperService;
use jackfield_transport::TenantIdentity;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

type RouteService = TowerToHyperService<Router>;

/// The operator's routes, and a function that creates those of a tenant.
pub struct TenantRoutes {
    own: RouteService,
    create_routes: Arc<dyn Fn(&TenantIdentity) -> Router + Send + Sync>,
    /// By name. A tenant whose binding has changed gets new routes.
    tenants: Mutex<BTreeMap<Arc<str>, (TenantIdentity, RouteService)>>,
}

impl TenantRoutes {
    pub fn new(
        own: Router,
        create_routes: impl Fn(&TenantIdentity) -> Router + Send + Sync + 'static,
    ) -> TenantRoutes {
        TenantRoutes {
            own: into_service(own),
            create_routes: Arc::new(create_routes),
            tenants: Mutex::default(),
        }
    }

    pub(super) fn routes_of(&self, tenant: Option<&TenantIdentity>) -> RouteService {
        let Some(tenant) = tenant else { return self.own.clone() };
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        match tenants.get(&tenant.name) {
            Some((known, routes)) if known == tenant => routes.clone(),
            _ => {
                let routes = into_service((self.create_routes)(tenant));
                tenants.insert(tenant.name.clone(), (tenant.clone(), routes.clone()));
                routes
            }
        }
    }
}

/// Routes for the operator alone.
impl From<Router> for TenantRoutes {
    fn from(own: Router) -> TenantRoutes {
        TenantRoutes::new(own, |_| Router::new())
    }
}

fn into_service(routes: Router) -> RouteService {
    TowerToHyperService::new(routes.layer(DefaultBodyLimit::max(limits::API_BODY_BYTES_MAX)))
}
