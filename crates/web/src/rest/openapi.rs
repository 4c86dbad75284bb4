//! The description of all routes, made from the code that serves them.

use crate::rest::{Api, agents, asks, ops, runs, sessions};
use axum::{Json, Router, routing::get};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        Content, Ref, RefOr, ResponseBuilder, Schema,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jackfield",
        description = "Any coding agent as a durable session: REST and server-sent events.",
        license(name = "MIT OR Apache-2.0"),
    ),
    // They come as server-sent events: no route names them as its body.
    components(schemas(runs::RunEvent, sessions::SessionEvent)),
    modifiers(&Token),
    security(("token" = [])),
)]
struct Document;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("the file `token` in the daemon's state directory"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Every route, and its description.
fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(agents::list_agents))
        .routes(routes!(runs::chat))
        .routes(routes!(runs::make_run, runs::list_runs))
        .routes(routes!(runs::show_run))
        .routes(routes!(runs::run_events))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(sessions::list_sessions))
        .routes(routes!(sessions::show_session, sessions::delete_session))
        .routes(routes!(runs::prompt_session))
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

/// All routes with their description, complete.
pub(crate) fn described() -> (Router<Arc<Api>>, utoipa::openapi::OpenApi) {
    let (routes, mut document) = routes().split_for_parts();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten().filter(|it| it.security.is_none()) {
            let refused =
                ResponseBuilder::new().description("the token is missing or wrong").content(
                    "application/json",
                    Content::new(Some(Ref::from_schema_name("ErrorBody"))),
                );
            operation.responses.responses.insert("401".into(), refused.build().into());
        }
    }
    let schemas = document.components.as_mut().map(|it| &mut it.schemas);
    if let Some(RefOr::T(Schema::Object(codes))) = schemas.and_then(|it| it.get_mut("Code")) {
        codes.enum_values.get_or_insert_default().extend(AT_THE_DOOR.map(Value::from));
    }
    (routes, document)
}

/// The codes of those who are not let in; whoever stands at the door says them, before us. A page that
/// may not talk to us hears one that we say, too.
const AT_THE_DOOR: [&str; 3] = ["UNAUTHORIZED", "MISDIRECTED", "OVERLOADED"];

/// The whole description as JSON, for whoever keeps a copy.
pub fn document() -> String {
    let (_, document) = described();
    let mut text = document.to_pretty_json().expect("a description is plain data");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::document;
    use std::{env, fs, path::Path};

    #[test]
    fn the_copy_in_the_book_is_what_is_served() {
        let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if env::var("JACKFIELD_OPENAPI").is_ok_and(|it| it == "write") {
            fs::write(&copy, document()).unwrap();
        }
        let kept = fs::read_to_string(&copy).unwrap_or_default();
        let way = "JACKFIELD_OPENAPI=write cargo nextest run -p jackfield-web openapi";
        assert!(kept == document(), "docs/openapi.json is old: run `{way}`");
    }

    #[test]
    fn every_body_has_an_example_and_every_route_a_summary() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, route) in methods.as_object().unwrap() {
                assert!(route["summary"].is_string(), "{method} {path}");
                let Some(body) = route.get("requestBody") else { continue };
                let name = body["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
                let schema = document.pointer(&name[1..]).unwrap();
                assert!(schema["example"].is_object(), "{method} {path}");
            }
        }
    }
}
