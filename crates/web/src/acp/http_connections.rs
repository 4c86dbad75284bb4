//! All connections over HTTP by id.

use super::http_connection::HttpConnection;
use super::limits::CONNECTIONS_MAX;
use axum::http::HeaderValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct HttpConnections(Mutex<HashMap<HeaderValue, Arc<HttpConnection>>>);

impl HttpConnections {
    pub(super) fn has_room(&self) -> bool {
        self.lock().len() < CONNECTIONS_MAX
    }

    pub(super) fn add(&self, connection: &Arc<HttpConnection>) {
        self.lock().insert(connection.id.clone(), Arc::clone(connection));
    }

    pub(super) fn find(&self, id: &HeaderValue) -> Option<Arc<HttpConnection>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &HeaderValue) -> Option<Arc<HttpConnection>> {
        self.lock().remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HeaderValue, Arc<HttpConnection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
