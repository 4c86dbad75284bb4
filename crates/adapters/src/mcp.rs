//! Conversions of ACP's MCP server descriptions that several dialects share.

use serde_json::{Map, Value};

/// Converts ACP's list `[{name, value}]` of variables or headers to an object.
pub(crate) fn to_object(list: &Value) -> Map<String, Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|it| Some((it["name"].as_str()?.to_owned(), it["value"].clone()))).collect()
}
