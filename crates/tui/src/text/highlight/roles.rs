//! What the pieces of code are: the scopes of syntaxes, reduced to few roles.

use crate::text::ViewTheme;
use ratatui::style::Style;
use std::sync::OnceLock;
use syntect::parsing::{Scope, ScopeStack};

/// What a piece of code is, as far as styles differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRole {
    Plain,
    Comment,
    String,
    Constant,
    Keyword,
    Function,
    TypeName,
    Tag,
    Added,
    Removed,
}

/// Roles of the scopes that start with a name; the first that matches counts.
const ROLES: [(&str, CodeRole); 27] = [
    ("comment", CodeRole::Comment),
    ("constant.character.escape", CodeRole::Constant),
    ("string", CodeRole::String),
    ("constant", CodeRole::Constant),
    ("support.constant", CodeRole::Constant),
    ("keyword.operator.word", CodeRole::Keyword),
    ("keyword.operator", CodeRole::Plain),
    ("keyword", CodeRole::Keyword),
    ("storage", CodeRole::Keyword),
    ("variable.language", CodeRole::Keyword),
    ("entity.name.function", CodeRole::Function),
    ("support.function", CodeRole::Function),
    ("variable.function", CodeRole::Function),
    ("support.macro", CodeRole::Function),
    ("entity.name.macro", CodeRole::Function),
    ("entity.name.tag", CodeRole::Tag),
    ("entity.other.attribute-name", CodeRole::TypeName),
    ("entity.other.inherited-class", CodeRole::TypeName),
    ("entity.name.section", CodeRole::Keyword),
    ("entity.name", CodeRole::TypeName),
    ("support.type", CodeRole::TypeName),
    ("support.class", CodeRole::TypeName),
    ("markup.inserted", CodeRole::Added),
    ("markup.deleted", CodeRole::Removed),
    ("markup.heading", CodeRole::Keyword),
    ("markup.raw", CodeRole::String),
    ("meta.diff.header", CodeRole::Comment),
];

impl CodeRole {
    pub(super) fn style(self, theme: &ViewTheme) -> Style {
        let syntax = &theme.syntax;
        match self {
            CodeRole::Plain => theme.text,
            CodeRole::Comment => syntax.comment,
            CodeRole::String => syntax.string,
            CodeRole::Constant => syntax.constant,
            CodeRole::Keyword => syntax.keyword,
            CodeRole::Function => syntax.function,
            CodeRole::TypeName => syntax.type_name,
            CodeRole::Tag => syntax.tag,
            CodeRole::Added => theme.added,
            CodeRole::Removed => theme.removed,
        }
    }
}

/// The innermost scope with a role decides.
pub(super) fn find_role(scopes: &ScopeStack) -> CodeRole {
    static SCOPES: OnceLock<Vec<(Scope, CodeRole)>> = OnceLock::new();
    let roles = SCOPES.get_or_init(|| {
        ROLES.iter().filter_map(|&(name, role)| Some((Scope::new(name).ok()?, role))).collect()
    });
    let role = |scope: &Scope| roles.iter().find(|it| it.0.is_prefix_of(*scope)).map(|it| it.1);
    scopes.as_slice().iter().rev().find_map(role).unwrap_or(CodeRole::Plain)
}
