//! JSON with comments, parsed with the position of every token.

mod format;
mod insert;
mod remove;

pub use format::format_document;
pub(crate) use insert::{insert_member, insert_root, replace_value};
pub(crate) use remove::{RemovalError, remove_inserted};

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Object, ObjectProp, Value as SyntaxNode},
    common::{Range, Ranged as _},
    parse_to_ast,
    tokens::{Token, TokenAndRange},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the parsers of Zed and VS Code accept: comments and trailing commas, and no other extension.
const PARSE_OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
};

/// A text that is not JSON with comments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct SyntaxError {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),

    /// `name` is empty for the whole document.
    #[error("line {line}: {} is not an object", if name.is_empty() { "the document".to_owned() } else { format!("`{name}`") })]
    NotAnObject { name: String, line: usize },

    /// The text was not changed, because the change would have affected more than the members of ours.
    #[error("the file has a form in which `{name}` cannot be changed safely")]
    UnsafeEdit { name: String },
}

/// A value that was inserted into a document, with the whitespace that was inserted around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsertedValue {
    /// The names of the members that lead to it; empty for the root of the document.
    pub path: Vec<String>,
    pub value: Value,
    before: String,
    after: String,
    /// Whether the object had no other member.
    is_first: bool,
}

impl InsertedValue {
    /// Whether it was inserted as the place for others: an empty object.
    pub(crate) fn is_container(&self) -> bool {
        self.value.as_object().is_some_and(serde_json::Map::is_empty)
    }
}

pub(crate) struct JsoncDocument<'a> {
    text: &'a str,
    /// `None` if the text has only whitespace and comments.
    root: Option<SyntaxNode<'a>>,
    /// With comments, in the order of the text.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> JsoncDocument<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<JsoncDocument<'a>, SyntaxError> {
        let collected =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collected, &PARSE_OPTIONS).map_err(|error| {
            let mut reason = error.kind().to_string();
            reason.get_mut(..1).map(str::make_ascii_lowercase);
            SyntaxError { line: error.line_display(), column: error.column_display(), reason }
        })?;
        let tokens = parsed.tokens.unwrap_or_default();
        Ok(JsoncDocument { text, root: parsed.value, tokens })
    }

    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }

    /// The value at this path. Of members with the same name, editors use the last one.
    pub(crate) fn find_value(&self, path: &[String]) -> Option<Value> {
        self.find_node(path).map(|it| it.clone().into())
    }

    fn find_node(&self, path: &[String]) -> Option<&SyntaxNode<'a>> {
        path.iter().try_fold(self.root.as_ref()?, |node, name| {
            find_property(node.as_object()?, name).map(|it| &it.value)
        })
    }

    fn find_member(&self, path: &[String]) -> Option<&ObjectProp<'a>> {
        let (name, parents) = path.split_last()?;
        find_property(self.find_node(parents)?.as_object()?, name)
    }

    fn find_object(&self, path: &[String]) -> Result<&Object<'a>, EditError> {
        let node = self.find_node(path);
        node.and_then(SyntaxNode::as_object).ok_or_else(|| EditError::NotAnObject {
            name: path.last().cloned().unwrap_or_default(),
            line: self.line_number(node.map_or(0, |it| it.range().start)),
        })
    }

    /// Whether the object of a member has other members.
    fn has_siblings(&self, path: &[String]) -> bool {
        let parents = path.split_last().map(|it| it.1);
        let object = parents.and_then(|it| self.find_node(it)?.as_object());
        object.is_some_and(|it| 1 < it.properties.len())
    }

    fn line_number(&self, position: usize) -> usize {
        self.text[..position].matches('\n').count() + 1
    }

    /// The last token or comment that ends at this position or before it.
    fn token_before(&self, position: usize) -> Option<&TokenAndRange<'a>> {
        self.tokens.iter().rev().find(|it| it.range.end <= position)
    }

    fn comma_before(&self, position: usize) -> Option<Range> {
        let earlier = self.tokens.iter().rev().filter(|it| it.range.end <= position);
        let token = earlier.into_iter().find(|it| !is_comment(it))?;
        (token.token == Token::Comma).then_some(token.range)
    }

    fn comma_after(&self, position: usize) -> Option<Range> {
        let later = self.tokens.iter().filter(|it| position <= it.range.start);
        let token = later.into_iter().find(|it| !is_comment(it))?;
        (token.token == Token::Comma).then_some(token.range)
    }

    fn has_comment_in(&self, range: Range) -> bool {
        let inside =
            |it: &&TokenAndRange<'_>| range.start <= it.range.start && it.range.end <= range.end;
        self.tokens.iter().filter(inside).any(is_comment)
    }

    fn newline(&self) -> &'static str {
        match self.text.find('\n') {
            Some(end) if self.text[..end].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// The whitespace at the start of the line of this position.
    fn line_indent(&self, position: usize) -> &'a str {
        let start = self.text[..position].rfind('\n').map_or(0, |it| it + 1);
        let line = &self.text[start..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The indentation of a node, if nothing else is before it on its line.
    fn own_line_indent(&self, position: usize) -> Option<&'a str> {
        let start = self.text[..position].rfind('\n')? + 1;
        let indent = &self.text[start..position];
        indent.chars().all(|it| matches!(it, ' ' | '\t')).then_some(indent)
    }
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn find_property<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    object.properties.iter().rev().find(|it| it.name.as_str() == name)
}

/// Applies changes, each of which replaces a range by a text. They must not overlap.
fn splice(text: &str, mut changes: Vec<(Range, String)>) -> String {
    // The sort is stable: texts for the same position are inserted in their order.
    changes.sort_by_key(|(range, _)| range.start);
    let (mut spliced, mut end) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in changes {
        spliced.push_str(&text[end..range.start]);
        spliced.push_str(&replacement);
        end = range.end;
    }
    spliced.push_str(&text[end..]);
    spliced
}

/// The value of a text, to compare documents by their content; `None` if it has none.
fn read_value(text: &str) -> Result<Option<Value>, SyntaxError> {
    Ok(JsoncDocument::parse(text)?.find_value(&[]))
}
