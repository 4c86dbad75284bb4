//! Removes what was inserted into a document, also after other parts of it were edited.

use super::{InsertedValue, JsoncDocument, SyntaxError, read_value, splice};
use jsonc_parser::common::{Range, Ranged as _};
use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RemovalError {
    /// It is not in the document.
    Missing,
    /// It has another value or other members now, or cannot be removed without affecting other parts.
    Changed,
    Syntax(SyntaxError),
}

impl From<SyntaxError> for RemovalError {
    fn from(error: SyntaxError) -> RemovalError {
        RemovalError::Syntax(error)
    }
}

/// Removes a value with the commas and the whitespace that were inserted with it.
pub(crate) fn remove_inserted(
    text: &str,
    inserted: &InsertedValue,
) -> Result<String, RemovalError> {
    let document = JsoncDocument::parse(text)?;
    let value = document.find_node(&inserted.path).ok_or(RemovalError::Missing)?;
    if Value::from(value.clone()) != inserted.value || document.has_comment_in(value.range()) {
        return Err(RemovalError::Changed);
    }
    let range = match document.find_member(&inserted.path) {
        Some(member) => Range::new(member.range.start, value.range().end),
        None => value.range(),
    };
    // The root of a document has no commas around it, so that none is found.
    let own_comma = document.comma_after(range.end);
    let earlier_comma = document.comma_before(range.start);
    // Without a comma of its own, the member is the last one: the comma before it was inserted with it.
    let comma = own_comma.or(earlier_comma);
    let start = start_of_whitespace(text, range.start, &inserted.before);
    // The whitespace after it starts behind a comma that is removed separately.
    let tail = own_comma.map_or(range.end, |it| it.end);
    // Members that were added since are on lines of their own, as ours was: the closing brace stays where it is.
    let keeps_end = inserted.is_first && document.has_siblings(&inserted.path);
    let end = if keeps_end { tail } else { end_of_whitespace(text, tail, &inserted.after) };
    let remove =
        |ranges: &[Range]| splice(text, ranges.iter().map(|it| (*it, String::new())).collect());
    let bare: Vec<Range> = comma.into_iter().chain([range]).collect();
    let mut whole = vec![Range::new(start, range.end), Range::new(tail, end)];
    whole.extend(comma);
    let expected = remove_value(read_value(text)?, &inserted.path);
    [whole, bare]
        .iter()
        .map(|it| remove(it))
        .find(|it| read_value(it).as_ref() == Ok(&expected))
        .ok_or(RemovalError::Changed)
}

/// Where the inserted whitespace before a position starts. If the text was indented anew, its line break and indentation.
fn start_of_whitespace(text: &str, position: usize, inserted: &str) -> usize {
    let head = &text[..position];
    if let Some(rest) = head.strip_suffix(inserted) {
        return rest.len();
    }
    let rest = head.trim_end_matches([' ', '\t']);
    match rest.strip_suffix('\n') {
        Some(rest) => rest.strip_suffix('\r').unwrap_or(rest).len(),
        None => rest.len(),
    }
}

/// Where the inserted whitespace after a position ends. It was inserted before a closing brace or at the end.
fn end_of_whitespace(text: &str, position: usize, inserted: &str) -> usize {
    let tail = &text[position..];
    let rest = tail.strip_prefix(inserted);
    let is_ours = rest.is_some_and(|it| it.is_empty() || it.trim_start().starts_with('}'));
    if is_ours { position + inserted.len() } else { position }
}

fn remove_value(document: Option<Value>, path: &[String]) -> Option<Value> {
    let (name, parents) = path.split_last()?;
    let mut document = document?;
    let parent = parents.iter().try_fold(&mut document, |it, name| it.get_mut(name))?;
    parent.as_object_mut()?.shift_remove(name);
    Some(document)
}
