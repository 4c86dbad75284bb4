//! What a server says about its models.

use super::Listed;
use serde_json::Value;

/// Where servers tell the window: the one that is in force before the one the model could have.
const WINDOWS: [&str; 9] = [
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
const MODALITIES: [&str; 3] =
    ["/architecture/input_modalities", "/input_modalities", "/modalities"];

/// The answer to `GET /models`; none if it is something else.
pub(super) fn listed(answer: &Value) -> Option<Vec<Listed>> {
    let list = answer["data"].as_array().or_else(|| answer["models"].as_array());
    let list = list.or_else(|| answer.as_array())?;
    let mut models: Vec<Listed> = list.iter().filter_map(one).collect();
    // llama.cpp describes its one model twice, and more under `data`.
    models.dedup_by(|next, it| next.id == it.id);
    Some(models)
}

fn one(model: &Value) -> Option<Listed> {
    let names = [model, &model["id"], &model["model"], &model["name"]];
    let id = names.iter().find_map(|it| it.as_str())?.to_owned();
    let window = WINDOWS.iter().filter_map(|it| model.pointer(it)?.as_u64()).find(|it| 0 < *it);
    Some(Listed { id, window, takes_images: takes_images(model) })
}

fn takes_images(model: &Value) -> Option<bool> {
    let told = MODALITIES.iter().find_map(|it| model.pointer(it));
    // `["text", "image"]`, or `{"input": […]}`, or `{"vision": true}`.
    let told = told.map(|it| it.get("input").unwrap_or(it));
    let is_image = |it: &Value| matches!(it.as_str(), Some("image" | "vision"));
    match told {
        Some(Value::Array(list)) => Some(list.iter().any(is_image)),
        Some(Value::Object(flags)) => flags.get("vision").or(flags.get("image"))?.as_bool(),
        _ => {
            let capabilities = &model["capabilities"];
            let listed = capabilities.as_array().map(|it| it.iter().any(is_image));
            listed.or_else(|| capabilities["vision"].as_bool())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::listed;
    use serde_json::json;

    fn told(answer: &serde_json::Value) -> Vec<(String, Option<u64>, Option<bool>)> {
        let listed = listed(answer).unwrap().into_iter();
        listed.map(|it| (it.id, it.window, it.takes_images)).collect()
    }

    #[test]
    fn each_server_tells_in_its_own_words() {
        let answer = json!({"object": "list", "data": [
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
        assert_eq!(told(&answer), expected);
    }

    #[test]
    fn other_lists_are_read_and_what_is_none_is_not() {
        let ollama = json!({"models": [{"name": "a", "model": "a:latest", "capabilities": ["completion", "vision"]}]});
        assert_eq!(told(&ollama), [("a:latest".to_owned(), None, Some(true))]);
        assert_eq!(told(&json!(["a", "a"])), [("a".to_owned(), None, None)]);
        assert_eq!(listed(&json!({"error": "no"})), None);
        assert_eq!(listed(&json!({"data": []})), Some(vec![]));
    }
}
