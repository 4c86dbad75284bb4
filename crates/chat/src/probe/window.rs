//! Which server it is, and what it says about the window that is in force.

use crate::model::Model;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Ollama,
    LlamaCpp,
    Vllm,
    Other,
}

/// Tokens, and who told.
type Window = (u64, &'static str);

impl Server {
    /// `listed` is what the list of models says, which may be what the model could have.
    pub(super) async fn recognize(
        server: &Model,
        model: &str,
        listed: Option<u64>,
    ) -> (Server, Option<Window>) {
        let listed = listed.map(|it| (it, "/models"));
        if let Some(loaded) = server.page("/api/ps", None).await {
            let shown = server.page("/api/show", Some(&json!({"model": model}))).await;
            let window = of_ollama(&loaded, &shown.unwrap_or_default(), model);
            return (Server::Ollama, window.or(listed));
        }
        if let Some(props) = server.page("/props", None).await {
            let window =
                props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
            return (Server::LlamaCpp, window.map(|it| (it, "/props")).or(listed));
        }
        let models = server.page("/v1/models", None).await.unwrap_or_default();
        let is_vllm = models.pointer("/data/0/owned_by").is_some_and(|it| it == "vllm");
        (if is_vllm { Server::Vllm } else { Server::Other }, listed)
    }
}

/// What is loaded tells what is in force; what is shown tells what was asked for, or nothing.
fn of_ollama(loaded: &Value, shown: &Value, model: &str) -> Option<Window> {
    let is_it = |it: &&Value| {
        let names = [&it["name"], &it["model"]].map(|it| it.as_str().unwrap_or_default());
        names.iter().any(|it| *it == model || it.strip_suffix(":latest") == Some(model))
    };
    let loaded = loaded["models"].as_array().into_iter().flatten().find(is_it);
    if let Some(tokens) = loaded.and_then(|it| it["context_length"].as_u64()) {
        return Some((tokens, "/api/ps"));
    }
    let parameters = shown["parameters"].as_str().unwrap_or_default();
    let set = parameters.lines().find_map(|it| it.trim().strip_prefix("num_ctx"));
    set.and_then(|it| Some((it.trim().parse().ok()?, "/api/show")))
}
