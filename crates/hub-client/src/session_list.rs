//! The list of sessions.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The rows in the response to `_jackfield/sessions`. A row that has another form is skipped.
pub fn parse_session_list<Row: DeserializeOwned>(mut response: Value) -> Vec<Row> {
    let rows = response.get_mut("sessions").map(Value::take);
    let Some(Value::Array(rows)) = rows else { return Vec::new() };
    rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_another_form_are_skipped() {
        let response = json!({ "sessions": ["s-1", 7, "s-2"] });
        assert_eq!(parse_session_list::<String>(response), ["s-1", "s-2"]);
        assert_eq!(parse_session_list::<String>(json!({})), [""; 0]);
        assert_eq!(parse_session_list::<String>(Value::Null), [""; 0]);
    }
}
