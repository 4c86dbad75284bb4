//! Parses the list of models that a server returns.

use super::ModelInfo;
use serde_json::Value;

/// Where servers report the context window. The configured size comes before the maximum of the
/// model.
const WINDOW_POINTERS: [&str; 9] = [
    "/meta/n_ctx",
    "/max_model_len",
    "/top_provider/context_length",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/model_info/max_input_tokens",
    "/max_input_tokens",
    "/meta/n_ctx_train",
];
const MODALITY_POINTERS: [&str; 3] =
    ["/architecture/input_modalities", "/input_modalities", "/modalities"];

/// Parses the response to `GET /models`. Returns `None` if it is not a list of models.
pub(super) fn parse_model_list(response: &Value) -> Option<Vec<ModelInfo>> {
    let list = response["data"].as_array().or_else(|| response["models"].as_array());
    let list = list.or_else(|| response.as_array())?;
    let mut models: Vec<ModelInfo> = list.iter().filter_map(parse_model).collect();
    // llama.cpp describes its only model twice, with more details under `data`.
    models.dedup_by(|next, it| next.id == it.id);
    Some(models)
}

fn parse_model(model: &Value) -> Option<ModelInfo> {
    let names = [model, &model["id"], &model["model"], &model["name"]];
    let id = names.iter().find_map(|it| it.as_str())?.to_owned();
    let window =
        WINDOW_POINTERS.iter().filter_map(|it| model.pointer(it)?.as_u64()).find(|it| 0 < *it);
    Some(ModelInfo { id, window, accepts_images: accepts_images(model) })
}

fn accepts_images(model: &Value) -> Option<bool> {
    let modalities = MODALITY_POINTERS.iter().find_map(|it| model.pointer(it));
    // `["text", "image"]`, or `{"input": […]}`, or `{"vision": true}`.
    let modalities = modalities.map(|it| it.get("input").unwrap_or(it));
    let is_image = |it: &Value| matches!(it.as_str(), Some("image" | "vision"));
    match modalities {
        Some(Value::Array(list)) => Some(list.iter().any(is_image)),
        Some(Value::Object(flags)) => flags.get("vision").or(flags.get("image"))?.as_bool(),
        _ => {
            let capabilities = &model["capabilities"];
            let in_list = capabilities.as_array().map(|it| it.iter().any(is_image));
            in_list.or_else(|| capabilities["vision"].as_bool())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_model_list;
    use serde_json::json;

    fn parse(response: &serde_json::Value) -> Vec<(String, Option<u64>, Option<bool>)> {
        let models = parse_model_list(response).unwrap().into_iter();
        models.map(|it| (it.id, it.window, it.accepts_images)).collect()
    }

    #[test]
    fn window_and_modalities_are_found_in_the_formats_of_common_servers() {
        let response = json!({"object": "list", "data": [
            {"id": "gpt-4o", "object": "model"},
            {"id": "vllm", "max_model_len": 32768},
            {"id": "llama", "meta": {"n_ctx_train": 131_072, "n_ctx": 4096}},
            {"id": "old-llama", "meta": {"n_ctx_train": 8192}},
            {"id": "router", "context_length": 200_000, "top_provider": {"context_length": 128_000},
             "architecture": {"input_modalities": ["text", "image"]}},
            {"id": "blind", "top_provider": {"context_length": null}, "context_length": 9,
             "architecture": {"input_modalities": ["text"]}},
            {"id": "lite", "model_info": {"max_input_tokens": 7}, "capabilities": {"vision": true}},
            {"no": "id"},
        ]});
        let it = |id: &str, window, images| (id.to_owned(), window, images);
        let expected = [
            it("gpt-4o", None, None),
            it("vllm", Some(32768), None),
            it("llama", Some(4096), None),
            it("old-llama", Some(8192), None),
            it("router", Some(128_000), Some(true)),
            it("blind", Some(9), Some(false)),
            it("lite", Some(7), Some(true)),
        ];
        assert_eq!(parse(&response), expected);
    }

    #[test]
    fn other_list_formats_are_parsed_and_non_lists_are_rejected() {
        let ollama = json!({"models": [{"name": "a", "model": "a:latest", "capabilities": ["completion", "vision"]}]});
        assert_eq!(parse(&ollama), [("a:latest".to_owned(), None, Some(true))]);
        assert_eq!(parse(&json!(["a", "a"])), [("a".to_owned(), None, None)]);
        assert_eq!(parse_model_list(&json!({"error": "no"})), None);
        assert_eq!(parse_model_list(&json!({"data": []})), Some(vec![]));
    }
}
