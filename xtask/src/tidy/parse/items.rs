//! Finds the types, functions and `impl` blocks of a file.

use super::tokens::{Token, TokenKind};

/// A struct, enum, union, trait or type alias; associated types are not definitions.
#[derive(Debug, PartialEq)]
pub(crate) struct TypeItem<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// `pub` without a restriction such as `pub(crate)`.
    pub(crate) is_public: bool,
    /// The named fields of a struct.
    pub(crate) fields: Vec<&'a str>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct FunctionItem<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// The type or trait whose `impl` block or declaration contains it.
    pub(crate) owner: Option<&'a str>,
    /// The trait has chosen its name.
    pub(crate) is_in_trait_impl: bool,
    /// `self` or `&self` is its only argument.
    pub(crate) takes_only_self: bool,
}

/// An `impl` block without a trait.
#[derive(Debug, PartialEq)]
pub(crate) struct ImplBlock<'a> {
    pub(crate) type_name: &'a str,
}

#[derive(Debug, Default)]
pub(crate) struct FileItems<'a> {
    pub(crate) types: Vec<TypeItem<'a>>,
    pub(crate) functions: Vec<FunctionItem<'a>>,
    pub(crate) impl_blocks: Vec<ImplBlock<'a>>,
}

pub(super) fn find_items<'a>(tokens: &[Token<'a>], closings: &[usize]) -> FileItems<'a> {
    let mut finder =
        ItemFinder { tokens, closings, scopes: Vec::new(), items: FileItems::default() };
    let mut at = 0;
    while at < tokens.len() {
        at = finder.visit(at);
    }
    finder.items
}

#[derive(Debug, Clone, Copy)]
enum ScopeKind<'a> {
    Impl { type_name: &'a str, has_trait: bool },
    Trait(&'a str),
    Function,
}

struct ItemFinder<'a, 'b> {
    tokens: &'b [Token<'a>],
    closings: &'b [usize],
    /// What surrounds the current token, with the position at which it ends.
    scopes: Vec<(usize, ScopeKind<'a>)>,
    items: FileItems<'a>,
}

impl<'a> ItemFinder<'a, '_> {
    /// Looks at one token and returns the position of the next one to look at.
    fn visit(&mut self, at: usize) -> usize {
        while self.scopes.last().is_some_and(|(end, _)| *end <= at) {
            self.scopes.pop();
        }
        match self.text(at) {
            "impl" if self.starts_item(at) => self.visit_impl(at),
            "struct" | "enum" | "trait" if self.is_name(at + 1) => self.visit_type(at),
            "union" if self.is_name(at + 1) && ["{", "<"].contains(&self.text(at + 2)) => {
                self.visit_type(at)
            }
            "type" if self.is_name(at + 1) && !self.is_in_impl_or_trait() => self.visit_type(at),
            "fn" if self.is_name(at + 1) => self.visit_function(at),
            // The names in a macro are its parameters.
            "macro_rules" if self.text(at + 3) == "{" => self.closings[at + 3] + 1,
            _ => at + 1,
        }
    }

    fn visit_impl(&mut self, at: usize) -> usize {
        let body = self.find_body(at);
        let mut start = at + 1;
        if self.text(start) == "<" {
            start = self.skip_generics(start);
        }
        let target = (start..body).find(|it| self.text(*it) == "for" && self.text(it + 1) != "<");
        let has_trait = target.is_some();
        let type_name = self.last_path_segment(target.map_or(start, |it| it + 1), body);
        if !has_trait {
            self.items.impl_blocks.push(ImplBlock { type_name });
        }
        self.enter(body, ScopeKind::Impl { type_name, has_trait })
    }

    fn visit_type(&mut self, at: usize) -> usize {
        let name = self.tokens[at + 1];
        let is_public = 0 < at && self.text(at - 1) == "pub";
        let body = self.find_body(at);
        let is_struct = self.text(at) == "struct" && self.text(body) == "{";
        let fields = if is_struct { self.field_names(body) } else { Vec::new() };
        self.items.types.push(TypeItem { name: name.text, line: name.line, is_public, fields });
        if self.text(at) == "trait" {
            return self.enter(body, ScopeKind::Trait(name.text));
        }
        at + 2
    }

    fn visit_function(&mut self, at: usize) -> usize {
        let name = self.tokens[at + 1];
        let (owner, is_in_trait_impl) = match self.scopes.last() {
            Some((_, ScopeKind::Impl { type_name, has_trait })) => (Some(*type_name), *has_trait),
            Some((_, ScopeKind::Trait(name))) => (Some(*name), false),
            _ => (None, false),
        };
        let mut arguments = at + 2;
        if self.text(arguments) == "<" {
            arguments = self.skip_generics(arguments);
        }
        let takes_only_self = self.takes_only_self(arguments);
        self.items.functions.push(FunctionItem {
            name: name.text,
            line: name.line,
            owner,
            is_in_trait_impl,
            takes_only_self,
        });
        self.enter(self.find_body(at), ScopeKind::Function)
    }

    /// Enters the scope whose opening brace is at `body`; a declaration without a body has none.
    fn enter(&mut self, body: usize, kind: ScopeKind<'a>) -> usize {
        if self.text(body) == "{" {
            self.scopes.push((self.closings[body], kind));
        }
        body + 1
    }

    /// The position of the `{` or `;` that ends the head of an item.
    fn find_body(&self, mut at: usize) -> usize {
        while at < self.tokens.len() && !["{", ";"].contains(&self.text(at)) {
            at = self.closings[at] + 1;
        }
        at
    }

    /// The position behind the generics that start at `at`.
    fn skip_generics(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        while at < self.tokens.len() {
            match self.text(at) {
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at = self.closings[at] + 1;
            if depth == 0 {
                break;
            }
        }
        at
    }

    /// The name of the type that is written at `start`: `Parts` of `&'a mut super::Parts<T>`.
    fn last_path_segment(&self, start: usize, end: usize) -> &'a str {
        let path = (start..end).take_while(|it| !["<", "where"].contains(&self.text(*it)));
        let names = path.filter(|it| self.is_name(*it)).map(|it| self.tokens[it].text);
        names.last().unwrap_or("")
    }

    fn field_names(&self, body: usize) -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut at = body + 1;
        while at < self.closings[body] {
            let follows = ["{", ",", "]", "pub", ")"].contains(&self.text(at - 1));
            if follows && self.is_name(at) && self.text(at + 1) == ":" {
                names.push(self.tokens[at].text);
            }
            at = self.closings[at] + 1;
        }
        names
    }

    fn takes_only_self(&self, arguments: usize) -> bool {
        if self.text(arguments) != "(" {
            return false;
        }
        let inside = &self.tokens[arguments + 1..self.closings[arguments]];
        let mut names = inside.iter().filter(|it| it.kind != TokenKind::Lifetime);
        let first = names.find(|it| it.text != "&").map(|it| it.text);
        first == Some("self") && names.all(|it| it.text == ",")
    }

    /// `impl` is also written in types: `-> impl Iterator`, `&impl Debug`.
    fn starts_item(&self, at: usize) -> bool {
        at == 0 || ["}", ";", "]", "{", "unsafe"].contains(&self.text(at - 1))
    }

    fn is_in_impl_or_trait(&self) -> bool {
        let kind = self.scopes.last().map(|(_, kind)| kind);
        matches!(kind, Some(ScopeKind::Impl { .. } | ScopeKind::Trait(_)))
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(Token::is_identifier)
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |it| it.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tokens::{closing_positions, tokenize},
        *,
    };

    fn items(source: &str) -> FileItems<'_> {
        let tokens = tokenize(source);
        find_items(&tokens, &closing_positions(&tokens))
    }

    #[test]
    fn types_are_found_with_visibility_and_fields() {
        let found = items(
            "pub struct A<T> where T: B { #[doc = \"x\"] pub(crate) c: D<E, F>, pub g: H }\n\
             pub(crate) enum I { J { k: L } } type M = N; impl O for P { type Q = R; }\n\
             pub trait S { type T; fn u(&self); } struct V(W);\n\
             macro_rules! x { () => { struct Y; } }",
        );
        let types: Vec<_> = found.types.iter().map(|it| (it.name, it.is_public)).collect();
        let expected = [("A", true), ("I", false), ("M", false), ("S", true), ("V", false)];
        assert_eq!(types, expected);
        assert_eq!(found.types[0].fields, ["c", "g"]);
        assert_eq!(found.types[1].line, 2);
    }

    #[test]
    fn functions_have_the_owner_whose_block_contains_them() {
        let found = items(
            "impl<T: Fn(u8) -> u8> super::Hub<T> { fn a<B>(&self) -> impl C { fn d(e: F) {} } }\n\
             impl<'a> G<'a> for &mut Hub<u8> { fn h(&'a self, i: J) {} }\n\
             impl K for L where for<'a> M: N<'a> { fn o(self) {} } fn p() {} trait Q { fn r(); }",
        );
        let functions: Vec<_> =
            found.functions.iter().map(|it| (it.name, it.owner, it.is_in_trait_impl)).collect();
        let expected = [
            ("a", Some("Hub"), false),
            ("d", None, false),
            ("h", Some("Hub"), true),
            ("o", Some("L"), true),
            ("p", None, false),
            ("r", Some("Q"), false),
        ];
        assert_eq!(functions, expected);
        assert_eq!(found.impl_blocks, [ImplBlock { type_name: "Hub" }]);
    }

    #[test]
    fn accessor_takes_only_self() {
        let source = "impl A { fn b(&self) {} fn c(&'a self,) {} fn d(self) {} \
            fn e(&self, f: G) {} fn h(&mut self) {} fn i() {} }";
        let only: Vec<_> = items(source).functions.iter().map(|it| it.takes_only_self).collect();
        assert_eq!(only, [true, true, true, false, false, false]);
    }
}
