//! The agents in a settings file in JSON: adds those that are missing, updates those of ours that are outdated, and
//! removes exactly what was added.

use crate::jsonc::{
    EditError, InsertedValue, JsoncDocument, RemovalError, SyntaxError, insert_member, insert_root,
    remove_inserted, replace_value,
};
use serde_json::{Map, Value};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One agent as a member of the section of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsEntry {
    pub name: String,
    pub value: Value,
}

/// A settings file after agents were added.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EntryEdit {
    pub text: String,
    /// All that is ours in the text, to remove it later: the outermost first.
    pub inserted: Vec<InsertedValue>,
    /// The names of entries by what happened to them.
    pub added: Vec<String>,
    pub updated: Vec<String>,
    pub present: Vec<String>,
    /// Entries of ours that the user has changed since; they are kept.
    pub changed_by_user: Vec<String>,
    /// Entries with a name of ours that were not inserted by us; they are kept.
    pub not_ours: Vec<String>,
}

/// A settings file after our agents were removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EntryRemoval {
    pub text: String,
    pub removed: Vec<String>,
    /// Entries of ours that the user has changed since; they are kept.
    pub changed_by_user: Vec<String>,
}

/// Adds entries to the member `section` of the document. `earlier` is what earlier calls inserted, and `indent` the
/// indentation of one level if the text does not show one.
pub fn add_entries(
    text: &str,
    section: &str,
    entries: &[SettingsEntry],
    earlier: &[InsertedValue],
    indent: &str,
) -> Result<EntryEdit, EditError> {
    let (mark, text) = split_byte_order_mark(text);
    let mut edit = EntryEdit { text: text.to_owned(), ..EntryEdit::default() };
    let document = JsoncDocument::parse(text)?;
    edit.inserted =
        earlier.iter().filter(|it| document.find_value(&it.path).is_some()).cloned().collect();
    if !document.has_root() {
        let (text, inserted) = insert_root(text)?;
        edit.text = text;
        edit.inserted.push(inserted);
    }
    let path = [section.to_owned()];
    if find_value(&edit.text, &path)?.is_none() && !entries.is_empty() {
        edit.insert(&[], section, &Value::Object(Map::new()), indent)?;
    }
    for entry in entries {
        edit.add_entry(&path, entry, indent)?;
    }
    edit.text.insert_str(0, mark);
    Ok(edit)
}

impl EntryEdit {
    /// Whether the text is the same as before.
    pub fn is_unchanged(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty()
    }

    fn add_entry(
        &mut self,
        section: &[String],
        entry: &SettingsEntry,
        indent: &str,
    ) -> Result<(), EditError> {
        let path = [section, std::slice::from_ref(&entry.name)].concat();
        let own_index = self.inserted.iter().position(|it| it.path == path);
        let list = match (find_value(&self.text, &path)?, own_index) {
            (None, _) => {
                self.insert(section, &entry.name, &entry.value, indent)?;
                &mut self.added
            }
            (Some(current), _) if current == entry.value => &mut self.present,
            (Some(current), Some(index)) if current == self.inserted[index].value => {
                self.text = replace_value(&self.text, &path, &entry.value, indent)?;
                self.inserted[index].value = entry.value.clone();
                &mut self.updated
            }
            (Some(_), Some(_)) => &mut self.changed_by_user,
            (Some(_), None) => &mut self.not_ours,
        };
        list.push(entry.name.clone());
        Ok(())
    }

    fn insert(
        &mut self,
        parents: &[String],
        name: &str,
        value: &Value,
        indent: &str,
    ) -> Result<(), EditError> {
        let (text, inserted) = insert_member(&self.text, parents, name, value, indent)?;
        self.text = text;
        self.inserted.push(inserted);
        Ok(())
    }
}

/// Removes what calls of [`add_entries`] inserted. An object that was created for the entries is kept if it has other
/// members or comments now.
pub fn remove_entries(text: &str, inserted: &[InsertedValue]) -> Result<EntryRemoval, SyntaxError> {
    let (mark, text) = split_byte_order_mark(text);
    let mut removal = EntryRemoval { text: text.to_owned(), ..EntryRemoval::default() };
    for value in inserted.iter().rev() {
        let name = value.path.last().cloned().unwrap_or_default();
        match remove_inserted(&removal.text, value) {
            Ok(text) => {
                removal.text = text;
                if !value.is_container() {
                    removal.removed.push(name);
                }
            }
            Err(RemovalError::Changed) if !value.is_container() => {
                removal.changed_by_user.push(name);
            }
            Err(RemovalError::Missing | RemovalError::Changed) => {}
            Err(RemovalError::Syntax(error)) => return Err(error),
        }
    }
    removal.removed.reverse();
    removal.text.insert_str(0, mark);
    Ok(removal)
}

fn find_value(text: &str, path: &[String]) -> Result<Option<Value>, EditError> {
    Ok(JsoncDocument::parse(text)?.find_value(path))
}

fn split_byte_order_mark(text: &str) -> (&str, &str) {
    let rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split_at(text.len() - rest.len())
}
