//! The description of all routes, made from the code that serves them.

use crate::{Api, agents, asks, ops, sessions};
use axum::{Json, Router, routing::get};
use std::sync::Arc;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jackfield",
        description = "Any coding agent as a durable session: REST and server-sent events.",
        license(name = "MIT OR Apache-2.0"),
    ),
    modifiers(&Token),
    security(("token" = [])),
)]
struct Document;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("the file `token` in the daemon's runtime directory"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Every route, and its description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(agents::list_agents))
        .routes(routes!(sessions::list_sessions))
        .routes(routes!(sessions::show_session, sessions::delete_session))
        .routes(routes!(sessions::close_session))
        .routes(routes!(sessions::fork_session))
        .routes(routes!(sessions::export_session))
        .routes(routes!(sessions::session_events))
        .routes(routes!(asks::list_asks))
        .routes(routes!(asks::answer_ask))
        .routes(routes!(ops::healthz))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::metrics))
}

/// The route of the description itself.
pub(crate) fn served(document: Arc<utoipa::openapi::OpenApi>) -> Router<Arc<Api>> {
    Router::new().route("/openapi.json", get(async move || Json((*document).clone())))
}

/// The whole description as JSON, for whoever keeps a copy.
pub fn document() -> String {
    let (_, document) = routes().split_for_parts();
    let mut text = document.to_pretty_json().expect("a description is plain data");
    text.push('\n');
    text
}
