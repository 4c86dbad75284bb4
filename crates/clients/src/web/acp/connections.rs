//! All connections over HTTP, by their ids.

use super::connection::Connection;
use super::limits::CONNECTIONS_MAX;
use axum::http::HeaderValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<HashMap<HeaderValue, Arc<Connection>>>);

impl Connections {
    pub(super) fn has_room(&self) -> bool {
        self.all().len() < CONNECTIONS_MAX
    }

    pub(super) fn add(&self, connection: &Arc<Connection>) {
        self.all().insert(connection.id.clone(), Arc::clone(connection));
    }

    pub(super) fn find(&self, id: &HeaderValue) -> Option<Arc<Connection>> {
        self.all().get(id).cloned()
    }

    pub(super) fn forget(&self, id: &HeaderValue) -> Option<Arc<Connection>> {
        self.all().remove(id)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<HeaderValue, Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
