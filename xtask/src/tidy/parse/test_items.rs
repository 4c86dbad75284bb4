//! Separates test code from production code in one file.

use super::tokens::{Token, TokenKind, closing_positions};

const TEST_ATTRIBUTE: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]"];
const TEST_FILE_ATTRIBUTE: &[&str] = &["#", "!", "[", "cfg", "(", "test", ")", "]"];

/// The first words of items. What starts otherwise is a field, a variant or a match arm, and ends
/// with a comma.
const ITEM_KEYWORDS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "let", "mod", "pub", "static", "struct",
    "trait", "type", "union", "unsafe", "use",
];

/// A file without its `#[cfg(test)]` items.
#[derive(Debug, Default)]
pub(super) struct ProductionCode<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// Lines of the removed items.
    pub(super) test_lines: usize,
    /// Names of `#[cfg(test)] mod name;`, whose code is in a file of its own.
    pub(super) test_modules: Vec<&'a str>,
}

/// A file with `#![cfg(test)]` has no production code.
pub(super) fn remove_tests<'a>(all: &[Token<'a>]) -> ProductionCode<'a> {
    let closings = closing_positions(all);
    let mut code = ProductionCode::default();
    let mut at = 0;
    while at < all.len() {
        if starts_with(&all[at..], TEST_FILE_ATTRIBUTE) {
            return ProductionCode::default();
        }
        if !starts_with(&all[at..], TEST_ATTRIBUTE) {
            code.tokens.push(all[at]);
            at += 1;
            continue;
        }
        let end = item_end(all, &closings, at);
        code.test_lines += all[end - 1].line - all[at].line + 1;
        if let [.., keyword, name, semicolon] = &all[at..end]
            && keyword.text == "mod"
            && semicolon.text == ";"
        {
            code.test_modules.push(name.text);
        }
        at = end;
    }
    code
}

fn starts_with(tokens: &[Token<'_>], texts: &[&str]) -> bool {
    texts.len() <= tokens.len() && texts.iter().zip(tokens).all(|(text, it)| it.text == *text)
}

/// The position behind the item that starts with the attribute at `start`.
fn item_end(all: &[Token<'_>], closings: &[usize], start: usize) -> usize {
    let text_at = |at: usize| all.get(at).map_or("", |it| it.text);
    let mut at = start;
    while text_at(at) == "#" && text_at(at + 1) == "[" {
        at = closings[at + 1] + 1;
    }
    let is_item = ITEM_KEYWORDS.contains(&text_at(at));
    let mut keyword = at;
    if text_at(keyword) == "pub" {
        keyword += 1;
        if text_at(keyword) == "(" {
            keyword = closings[keyword] + 1;
        }
    }
    let is_import = text_at(keyword) == "use";
    while let Some(token) = all.get(at) {
        match token.kind {
            TokenKind::Close => return at,
            TokenKind::Open if token.text == "{" && !is_import => return closings[at] + 1,
            TokenKind::Open => at = closings[at] + 1,
            _ if token.text == ";" || (token.text == "," && !is_item) => return at + 1,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{super::tokens::tokenize, *};

    fn kept(source: &str) -> String {
        let tokens = tokenize(source);
        let texts: Vec<_> = remove_tests(&tokens).tokens.iter().map(|it| it.text).collect();
        texts.join(" ")
    }

    #[test]
    fn test_items_are_removed_with_their_attributes_and_bodies() {
        assert_eq!(kept("a; #[cfg(test)] #[allow(x)] mod tests { fn b() {} } c;"), "a ; c ;");
        assert_eq!(kept("#[cfg(test)] pub(crate) use a::{b, c}; d"), "d");
        assert_eq!(kept("#[cfg(test)] fn a<B, C>(d: [u8; 3]) -> E { f } g"), "g");
        assert_eq!(kept("struct A { #[cfg(test)] b: C<(D, E)>, f: G }"), "struct A { f : G }");
        assert_eq!(kept("#![cfg(test)] fn a() {}"), "");
        assert_eq!(kept("#[cfg(unix)] fn a() {}"), "# [ cfg ( unix ) ] fn a ( ) { }");
    }

    #[test]
    fn lines_of_test_items_and_modules_in_other_files_are_reported() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n\
            #[cfg(test)] mod contract;\n";
        let code_tokens = tokenize(source);
        let code = remove_tests(&code_tokens);
        assert_eq!((code.test_lines, code.test_modules), (5, vec!["contract"]));
    }
}
