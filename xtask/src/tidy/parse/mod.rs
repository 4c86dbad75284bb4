//! Reads Rust source as tokens and finds the items, imports and test code in it.
//!
//! The rules need item names, paths, identifiers and string literals, also inside of macro calls
//! such as `json!` and `select!`, which `syn` leaves as tokens. Every check of a change begins with
//! building this program, so it has no parser as a dependency.

mod items;
mod source_tree;
mod test_items;
mod tokens;
mod use_paths;

pub(super) use items::FunctionItem;
pub(super) use source_tree::{SourceFile, SourceText, SourceTree};
pub(super) use tokens::{Token, TokenKind};
pub(super) use use_paths::parse_use;
