//! JSON documents on stdout.

use super::CommandOutput;
use crate::report::CommandError;
use serde_json::Value;

/// The version of all documents. It is raised when a member changes its meaning, not when one is added.
const VERSION: u64 = 1;

/// Prints `members` (an object) as one document with its version.
pub(crate) fn print_json_document(
    output: &CommandOutput,
    members: &Value,
) -> Result<(), CommandError> {
    let mut document = serde_json::Map::new();
    document.insert("version".to_owned(), VERSION.into());
    if let Value::Object(members) = members {
        document.extend(members.clone());
    }
    output.print_raw(&format!("{:#}\n", Value::Object(document)))
}
