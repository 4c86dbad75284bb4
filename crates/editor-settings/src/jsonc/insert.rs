//! Inserts members into a document, in the style of the text around them.

use super::{EditError, InsertedValue, JsoncDocument, format::ValueLayout, read_value, splice};
use jsonc_parser::{
    ast::Object,
    common::{Range, Ranged as _},
};
use serde_json::{Map, Value};

/// Inserts an empty object as the root of a document that has only whitespace and comments.
pub(crate) fn insert_root(text: &str) -> Result<(String, InsertedValue), EditError> {
    let document = JsoncDocument::parse(text)?;
    let newline = document.newline();
    let before = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
    let (path, value) = (Vec::new(), Value::Object(Map::new()));
    let (before, after) = (before.to_owned(), newline.to_owned());
    let inserted = InsertedValue { path, value, before: before.clone(), after, is_first: true };
    Ok((format!("{text}{before}{{}}{newline}"), inserted))
}

/// Inserts a member at the end of the object at `parents`, which does not have it.
pub(crate) fn insert_member(
    text: &str,
    parents: &[String],
    name: &str,
    value: &Value,
    default_unit: &str,
) -> Result<(String, InsertedValue), EditError> {
    let document = JsoncDocument::parse(text)?;
    let object = document.find_object(parents)?;
    let layout = document.choose_layout(default_unit);
    let close = object.range.end - 1;
    let position = document.token_before(close).map_or(close, |it| it.range.end);
    let last = object.properties.last().map(|it| it.range.end);
    let comma = last.map(|it| document.comma_after(it).is_some());

    let indent = document.member_indent(object, &layout.unit);
    let before = match (layout.is_one_line, last) {
        (false, _) => format!("{}{indent}", layout.newline),
        (true, Some(_)) => " ".to_owned(),
        (true, None) => String::new(),
    };
    let has_line_break = text[position..close].contains('\n');
    let after = if layout.is_one_line || has_line_break {
        String::new()
    } else {
        format!("{}{}", layout.newline, document.line_indent(object.range.start))
    };

    let mut changes = Vec::new();
    if let (Some(end), Some(false)) = (last, comma) {
        changes.push((Range::from_byte_index(end), ",".to_owned()));
    }
    let mut inserted = before.clone();
    layout.format_member(name, value, &indent, &mut inserted);
    if comma == Some(true) {
        // The object has a trailing comma, and keeps one.
        inserted.push(',');
    }
    inserted.push_str(&after);
    changes.push((Range::from_byte_index(position), inserted));

    let path: Vec<String> = parents.iter().cloned().chain([name.to_owned()]).collect();
    let edited = splice(text, changes);
    check_content(text, &edited, &path, value)?;
    let (value, is_first) = (value.clone(), last.is_none());
    Ok((edited, InsertedValue { path, value, before, after, is_first }))
}

/// Replaces the value of a member that exists.
pub(crate) fn replace_value(
    text: &str,
    path: &[String],
    value: &Value,
    default_unit: &str,
) -> Result<String, EditError> {
    let document = JsoncDocument::parse(text)?;
    let unsafe_edit = || EditError::UnsafeEdit { name: path.last().cloned().unwrap_or_default() };
    let range = document.find_node(path).ok_or_else(unsafe_edit)?.range();
    let mut formatted = String::new();
    let indent = document.line_indent(range.start);
    document.choose_layout(default_unit).format_value(value, indent, &mut formatted);
    let edited = splice(text, vec![(range, formatted)]);
    check_content(text, &edited, path, value)?;
    Ok(edited)
}

impl JsoncDocument<'_> {
    fn choose_layout(&self, default_unit: &str) -> ValueLayout {
        let root = self.root.as_ref().and_then(|it| it.as_object());
        let has_members = root.is_some_and(|it| !it.properties.is_empty());
        let unit = root.and_then(|it| self.indent_unit(it)).unwrap_or(default_unit).to_owned();
        let is_one_line = has_members && !self.text.trim().contains('\n');
        ValueLayout { newline: self.newline(), unit, is_one_line }
    }

    /// The indentation of one level: that of the first member of the root with a line of its own.
    fn indent_unit(&self, root: &Object<'_>) -> Option<&str> {
        let outer = self.line_indent(root.range.start);
        let mut indents =
            root.properties.iter().filter_map(|it| self.own_line_indent(it.range.start));
        indents.next()?.strip_prefix(outer).filter(|it| !it.is_empty())
    }

    /// The indentation of a new member of this object.
    fn member_indent(&self, object: &Object<'_>, unit: &str) -> String {
        let members = object.properties.iter().rev();
        let indent = members.into_iter().find_map(|it| self.own_line_indent(it.range.start));
        let derived = || format!("{}{unit}", self.line_indent(object.range.start));
        indent.map_or_else(derived, str::to_owned)
    }
}

/// Checks that the edited text has the value at the path and is otherwise the same.
fn check_content(
    text: &str,
    edited: &str,
    path: &[String],
    value: &Value,
) -> Result<(), EditError> {
    let unsafe_edit = || EditError::UnsafeEdit { name: path.last().cloned().unwrap_or_default() };
    let mut expected = read_value(text)?.ok_or_else(unsafe_edit)?;
    let (name, parents) = path.split_last().ok_or_else(unsafe_edit)?;
    let parent = parents.iter().try_fold(&mut expected, |it, name| it.get_mut(name));
    let parent = parent.and_then(Value::as_object_mut).ok_or_else(unsafe_edit)?;
    parent.insert(name.clone(), value.clone());
    match read_value(edited) {
        Ok(Some(content)) if content == expected => Ok(()),
        _ => Err(unsafe_edit()),
    }
}
