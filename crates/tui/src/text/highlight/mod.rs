//! Code with the colors of its language.

mod cache;
mod loading;
mod roles;

use self::cache::{LineRoles, ParsedCodeCache};
pub(crate) use self::loading::{CodeSample, SyntaxLoading};
use super::{ViewTheme, sanitize_text, span_list::SpanList};
use ratatui::text::Line;
use std::sync::{Mutex, OnceLock, PoisonError};
use syntect::parsing::{SyntaxReference, SyntaxSet};

/// Longer code is drawn without colors: some syntaxes need a second for each 100 kB.
const CODE_BYTES_MAX: usize = 32 * 1024;

/// The lines of `code`, not wrapped. `language` is the word after a fence of Markdown, or a path.
pub(crate) fn highlight_code(language: &str, code: &str, theme: &ViewTheme) -> Vec<Line<'static>> {
    let mut code = sanitize_text(code).into_owned();
    if !code.is_empty() && !code.ends_with('\n') {
        code.push('\n');
    }
    highlight_lines(language, &code, theme)
}

/// The same for sanitized code that may still grow: a line that has no end yet has no colors.
pub(super) fn highlight_lines(language: &str, code: &str, theme: &ViewTheme) -> Vec<Line<'static>> {
    let complete = code.rfind('\n').map_or("", |it| &code[..=it]);
    let has_colors = !complete.is_empty() && code.len() <= CODE_BYTES_MAX;
    let syntax = if has_colors { find_usable_syntax(language, complete, theme) } else { None };
    let roles = syntax.map_or_else(Vec::new, |(set, syntax)| parse_code(set, syntax, complete));
    let mut roles = roles.iter();
    let to_line = |line| match roles.next() {
        Some(roles) => style_line(line, roles, theme),
        None => Line::from(line.to_owned()),
    };
    code.lines().map(to_line).collect()
}

fn style_line(line: &str, roles: &LineRoles, theme: &ViewTheme) -> Line<'static> {
    let mut spans = SpanList::default();
    let mut start = 0;
    for &(length, role) in roles {
        let end = (start + length).min(line.len());
        spans.push(&line[start..end], role.style(theme));
        start = end;
    }
    Line::from(spans.take())
}

fn parse_code(set: &SyntaxSet, syntax: &SyntaxReference, code: &str) -> Vec<LineRoles> {
    static CACHE: OnceLock<Mutex<ParsedCodeCache>> = OnceLock::new();
    let cache = CACHE.get_or_init(Mutex::default);
    cache.lock().unwrap_or_else(PoisonError::into_inner).parse(set, syntax, code)
}

static SYNTAX_SET: OnceLock<SyntaxSet> = OnceLock::new();

/// All syntaxes. They are loaded when the first code is shown.
fn syntax_set() -> &'static SyntaxSet {
    SYNTAX_SET.get_or_init(two_face::syntax::extra_newlines)
}

fn is_set_loaded() -> bool {
    SYNTAX_SET.get().is_some()
}

/// The syntax of a language, unless it has to be loaded in the background first.
fn find_usable_syntax(
    language: &str,
    code: &str,
    theme: &ViewTheme,
) -> Option<(&'static SyntaxSet, &'static SyntaxReference)> {
    match &theme.syntax_loading {
        Some(loading) if has_syntax(&language_name(language)) => {
            loading.find_loaded(language, code)
        }
        Some(_) => None,
        None => find_syntax(language),
    }
}

/// Code without colors does not load the syntaxes.
fn has_syntax(name: &str) -> bool {
    !matches!(name, "" | "text" | "txt" | "plain" | "plaintext" | "output" | "log")
}

fn find_syntax(language: &str) -> Option<(&'static SyntaxSet, &'static SyntaxReference)> {
    let name = language_name(language);
    if !has_syntax(&name) {
        return None;
    }
    let set = syntax_set();
    let extension = name.rsplit('.').next().unwrap_or(&name);
    let syntax = set.find_syntax_by_token(&name).or_else(|| set.find_syntax_by_token(extension))?;
    Some((set, syntax))
}

/// `rust,ignore` is `rust`, `src/main.rs` is `main.rs`, `ts {3-5}` is `ts`.
fn language_name(language: &str) -> String {
    let word = language.trim_start().split([' ', ',', '{', '\t']).next().unwrap_or("");
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_lowercase();
    let alias = match name.as_str() {
        "shell" | "console" | "shell-session" | "shellscript" | "zsh" => "sh",
        "golang" => "go",
        "jsonc" | "json5" => "json",
        "objective-c" => "m",
        "py3" | "python3" => "py",
        "c#" => "cs",
        "docker" => "dockerfile",
        "mjs" | "cjs" => "js",
        "jsx" => "tsx",
        "mts" | "cts" => "ts",
        _ => return name,
    };
    alias.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ColorDepth;
    use ratatui::style::Style;

    fn roles(language: &str, code: &str) -> Vec<(String, Style)> {
        let theme = ViewTheme::new(ColorDepth::Ansi16);
        let lines = highlight_code(language, code, &theme);
        let spans = lines.into_iter().flat_map(|it| it.spans);
        spans.map(|it| (it.content.trim().to_owned(), it.style)).collect()
    }

    #[test]
    fn parts_of_code_have_their_styles() {
        let theme = ViewTheme::new(ColorDepth::Ansi16);
        let syntax = theme.syntax;
        let rust = roles("rust,ignore", "fn add(a: u8) -> u8 { a + 1 } // \"sum\"");
        for (text, style) in [
            ("fn", syntax.keyword),
            ("add", syntax.function),
            ("1", syntax.constant),
            ("// \"sum\"", syntax.comment),
        ] {
            assert!(rust.contains(&(text.to_owned(), style)), "{text} {rust:#?}");
        }
        let python = roles("src/x.py", "class Cat:\n    name = 'Tom'\n");
        for (text, style) in
            [("class", syntax.keyword), ("Cat", syntax.type_name), ("'Tom'", syntax.string)]
        {
            assert!(python.contains(&(text.to_owned(), style)), "{text} {python:#?}");
        }
        let diff = roles("diff", "-old\n+new\n");
        assert_eq!(diff, [("-old".to_owned(), theme.removed), ("+new".to_owned(), theme.added)]);
    }

    #[test]
    fn languages_are_found_by_name_alias_and_path() {
        let names = "rust rs Rust python py typescript ts tsx jsx javascript js go golang c cpp c++ java kotlin \
            swift ruby php bash sh shell console zsh json jsonc yaml yml toml html css scss sql diff xml markdown \
            md dockerfile Dockerfile Makefile nix haskell elixir lua zig ini svelte vue graphql proto protobuf \
            src/main.rs a/b.test.ts C:\\x\\y.cs terraform";
        let missing: Vec<_> =
            names.split_whitespace().filter(|it| find_syntax(it).is_none()).collect();
        assert_eq!(missing, [""; 0]);
        for name in ["", "text", "__proto__", "constructor", "../../etc"] {
            assert!(find_syntax(name).is_none(), "{name}");
        }
    }

    #[test]
    fn long_code_and_long_lines_have_no_colors_and_keep_their_text() {
        let long = "let x = 1;\n".repeat(CODE_BYTES_MAX / 11 + 1);
        let lines = highlight_code("rust", &long, &ViewTheme::new(ColorDepth::Ansi16));
        assert_eq!(lines.len(), CODE_BYTES_MAX / 11 + 1);
        assert!(lines.iter().all(|it| it.spans.len() == 1));
        let wide = format!("fn a() {{}}\n{}\nfn b() {{}}", "x".repeat(1_001));
        let lines = highlight_code("rust", &wide, &ViewTheme::new(ColorDepth::Ansi16));
        assert_eq!(
            lines.iter().map(|it| it.spans.len() > 1).collect::<Vec<_>>(),
            [true, false, true]
        );
    }

    #[test]
    fn highlighting_changes_no_character() {
        let code = "\tlet s = \"a\u{1b}[31m漢字\";\r\n\r\n// 🦀 end";
        for language in ["rust", "json", "unknown"] {
            let lines = highlight_code(language, code, &ViewTheme::new(ColorDepth::TrueColor));
            let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
            assert_eq!(text, ["    let s = \"a漢字\";", "", "// 🦀 end"], "{language}");
        }
    }
}
