//! One JSON document on stdout, for programs.

use super::Out;
use crate::report::Failure;
use serde_json::Value;

/// The shape of every document: raised when a member changes its meaning, not when one is added.
const VERSION: u64 = 1;

/// Prints `members` (an object) as one document that says its version.
pub(crate) fn document(out: &Out, members: &Value) -> Result<(), Failure> {
    let mut document = serde_json::Map::new();
    document.insert("version".to_owned(), VERSION.into());
    if let Value::Object(members) = members {
        document.extend(members.clone());
    }
    out.exact(&format!("{:#}\n", Value::Object(document)))
}
