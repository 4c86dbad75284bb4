//! The `OpenAPI` document of all routes, generated from the code.

use crate::rest::{
    RestState, agents, asks, directories, events, hosts, logins, logins::LOGIN_BODY_BYTES_MAX,
    operations, push, runs, sessions, upload, usage,
};
use axum::{Json, Router, extract::DefaultBodyLimit, routing::get};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        Content, Ref, RefOr, ResponseBuilder, Schema,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt as _},
    routes,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jackfield",
        description = "Any coding agent as a durable session: REST and server-sent events.",
        license(name = "MIT OR Apache-2.0"),
    ),
    // These are sent as server-sent events, so no route has them as its body.
    components(schemas(runs::RunEvent, sessions::StreamedSessionEvent, events::StreamedListEvent)),
    modifiers(&TokenSecurity),
    security(("token" = []), ("device" = [])),
)]
struct ApiDocument;

struct TokenSecurity;

impl Modify for TokenSecurity {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("the file `token` in the daemon's state directory"))
            .build();
        let cookie = ApiKeyValue::with_description(
            "jackfield-ID",
            "set by `POST /api/login`; accepted only from pages of this server",
        );
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        components.add_security_scheme("device", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// All routes with their descriptions.
fn routes() -> OpenApiRouter<Arc<RestState>> {
    OpenApiRouter::with_openapi(ApiDocument::openapi())
        .routes(routes!(agents::list_agents))
        .routes(routes!(runs::chat))
        .routes(routes!(runs::make_run, runs::list_runs))
        .routes(routes!(runs::show_run))
        .routes(routes!(runs::run_events))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(upload::upload_files))
        .routes(routes!(sessions::list_sessions, runs::open_session))
        .routes(routes!(runs::list_mcp_servers))
        .routes(routes!(runs::list_sandbox_profiles))
        .routes(routes!(directories::list_directories))
        .routes(routes!(sessions::show_session, sessions::rename_session, sessions::delete_session))
        .routes(routes!(sessions::cancel_turn))
        .routes(routes!(sessions::show_settings, sessions::change_settings))
        .routes(routes!(sessions::list_queue))
        .routes(routes!(sessions::withdraw_prompt))
        .routes(routes!(sessions::move_prompt))
        .routes(routes!(sessions::run_prompt))
        .routes(routes!(runs::prompt_session))
        .routes(routes!(sessions::close_session))
        .routes(routes!(sessions::fork_session))
        .routes(routes!(sessions::export_session))
        .routes(routes!(sessions::session_events))
        .routes(routes!(sessions::session_log))
        .routes(routes!(sessions::find_in_session))
        .routes(routes!(sessions::session_timeline))
        .routes(routes!(sessions::session_changes))
        .routes(routes!(sessions::session_diff))
        .routes(routes!(usage::show_usage))
        .routes(routes!(hosts::list_hosts))
        .routes(routes!(hosts::drain_host))
        .routes(routes!(events::list_events))
        .routes(routes!(asks::list_asks))
        .routes(routes!(asks::answer_ask))
        .routes(routes!(logins::show_me))
        .routes(routes!(logins::create_login_link))
        .routes(routes!(logins::log_in).layer(DefaultBodyLimit::max(LOGIN_BODY_BYTES_MAX)))
        .routes(routes!(logins::log_out))
        .routes(routes!(logins::list_devices))
        .routes(routes!(logins::rename_device, logins::revoke_device))
        .routes(routes!(push::show_push_key))
        .routes(routes!(push::subscribe_device, push::unsubscribe_device))
        .routes(routes!(operations::healthz))
        .routes(routes!(operations::readyz))
        .routes(routes!(operations::metrics))
}

/// The route of the document itself.
pub(crate) fn document_route(document: Arc<utoipa::openapi::OpenApi>) -> Router<Arc<RestState>> {
    Router::new().route("/openapi.json", get(async move || Json((*document).clone())))
}

/// All routes and the complete document.
pub(crate) fn routes_with_document() -> (Router<Arc<RestState>>, utoipa::openapi::OpenApi) {
    let (routes, mut document) = routes().split_for_parts();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten().filter(|it| it.security.is_none()) {
            let unauthorized = ResponseBuilder::new()
                .description("the token or the cookie is missing or wrong")
                .content(
                    "application/json",
                    Content::new(Some(Ref::from_schema_name("ErrorBody"))),
                );
            operation.responses.responses.insert("401".into(), unauthorized.build().into());
        }
    }
    let schemas = document.components.as_mut().map(|it| &mut it.schemas);
    if let Some(RefOr::T(Schema::Object(codes))) = schemas.and_then(|it| it.get_mut("Code")) {
        codes.enum_values.get_or_insert_default().extend(GUARD_CODES.map(Value::from));
    }
    (routes, document)
}

/// The error codes of the request guard, which rejects requests before they reach a route.
const GUARD_CODES: [&str; 3] = ["UNAUTHORIZED", "MISDIRECTED", "OVERLOADED"];

/// The document as JSON text.
pub fn document() -> String {
    let (_, document) = routes_with_document();
    let mut text = document.to_pretty_json().expect("plain data serializes");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::document;
    use std::{env, fs, path::Path};

    #[test]
    fn stored_openapi_document_is_current() {
        let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if env::var("JACKFIELD_OPENAPI").is_ok_and(|it| it == "write") {
            fs::write(&copy, document()).unwrap();
        }
        let stored = fs::read_to_string(&copy).unwrap_or_default();
        let command = "JACKFIELD_OPENAPI=write cargo nextest run -p jackfield-web openapi";
        assert!(stored == document(), "docs/openapi.json is outdated: run `{command}`");
    }

    #[test]
    fn every_body_has_an_example_and_every_route_has_a_summary() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, route) in methods.as_object().unwrap() {
                assert!(route["summary"].is_string(), "{method} {path}");
                let Some(body) = route.pointer("/requestBody/content/application~1json") else {
                    continue;
                };
                let name = body["schema"]["$ref"].as_str().unwrap();
                let schema = document.pointer(&name[1..]).unwrap();
                assert!(schema["example"].is_object(), "{method} {path}");
            }
        }
    }
}
