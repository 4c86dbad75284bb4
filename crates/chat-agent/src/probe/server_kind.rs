//! Detects the kind of server and the context window that it has configured.

use crate::model::ModelClient;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    Ollama,
    LlamaCpp,
    Vllm,
    Other,
}

/// The size in tokens, and the page that reported it.
type ReportedWindow = (u64, &'static str);

impl ServerKind {
    /// `listed_window` comes from the list of models. It may be the maximum of the model instead of
    /// the configured size, so the server's own pages take precedence.
    pub(super) async fn detect(
        client: &ModelClient,
        model: &str,
        listed_window: Option<u64>,
    ) -> (ServerKind, Option<ReportedWindow>) {
        let listed = listed_window.map(|it| (it, "/models"));
        if let Some(loaded) = client.read_extra_page("/api/ps", None).await {
            let details = client.read_extra_page("/api/show", Some(&json!({"model": model}))).await;
            let window = find_ollama_window(&loaded, &details.unwrap_or_default(), model);
            return (ServerKind::Ollama, window.or(listed));
        }
        if let Some(props) = client.read_extra_page("/props", None).await {
            let window =
                props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
            return (ServerKind::LlamaCpp, window.map(|it| (it, "/props")).or(listed));
        }
        let models = client.read_extra_page("/v1/models", None).await.unwrap_or_default();
        let is_vllm = models.pointer("/data/0/owned_by").is_some_and(|it| it == "vllm");
        (if is_vllm { ServerKind::Vllm } else { ServerKind::Other }, listed)
    }
}

/// `loaded` has the effective size of a loaded model; `details` has the requested size, if any.
fn find_ollama_window(loaded: &Value, details: &Value, model: &str) -> Option<ReportedWindow> {
    let is_model = |it: &&Value| {
        let names = [&it["name"], &it["model"]].map(|it| it.as_str().unwrap_or_default());
        names.iter().any(|it| *it == model || it.strip_suffix(":latest") == Some(model))
    };
    let loaded = loaded["models"].as_array().into_iter().flatten().find(is_model);
    if let Some(tokens) = loaded.and_then(|it| it["context_length"].as_u64()) {
        return Some((tokens, "/api/ps"));
    }
    let parameters = details["parameters"].as_str().unwrap_or_default();
    let requested = parameters.lines().find_map(|it| it.trim().strip_prefix("num_ctx"));
    requested.and_then(|it| Some((it.trim().parse().ok()?, "/api/show")))
}
