//! Code with the colors of its language.

use super::{ViewTheme, sanitize_text};
use ratatui::{
    style::Style,
    text::{Line, Span},
};
use std::sync::OnceLock;
use syntect::parsing::{
    ParseState, ParsingError, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet,
};

/// Code with more bytes is drawn without colors: it would take too long on each change of the size.
const CODE_BYTES_MAX: usize = 64 * 1024;
/// The same for one line, such as minified code.
const LINE_BYTES_MAX: usize = 1_000;

/// The lines of `code`, not wrapped. `language` is the word after a fence of Markdown, or a path.
pub(crate) fn highlight_code(language: &str, code: &str, theme: &ViewTheme) -> Vec<Line<'static>> {
    let code = sanitize_text(code);
    if code.len() > CODE_BYTES_MAX {
        return plain_lines(&code);
    }
    match find_syntax(language) {
        Some((set, syntax)) => LineHighlighter::new(set, syntax, theme).highlight_lines(&code),
        None => plain_lines(&code),
    }
}

fn plain_lines(code: &str) -> Vec<Line<'static>> {
    code.lines().map(|it| Line::from(it.to_owned())).collect()
}

/// The syntaxes are loaded when the first code is shown, in some ten milliseconds.
fn syntax_set() -> &'static SyntaxSet {
    static SYNTAX_SET: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAX_SET.get_or_init(two_face::syntax::extra_newlines)
}

fn find_syntax(language: &str) -> Option<(&'static SyntaxSet, &'static SyntaxReference)> {
    let name = language_name(language);
    // Code without colors does not load the syntaxes.
    if matches!(name.as_str(), "" | "text" | "txt" | "plain" | "plaintext" | "output" | "log") {
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

/// Parses lines in order: the state after a line decides how the next starts.
struct LineHighlighter<'a> {
    set: &'static SyntaxSet,
    state: ParseState,
    scopes: ScopeStack,
    styles: ScopeStyles<'a>,
}

impl LineHighlighter<'_> {
    fn new<'a>(
        set: &'static SyntaxSet,
        syntax: &SyntaxReference,
        theme: &'a ViewTheme,
    ) -> LineHighlighter<'a> {
        let state = ParseState::new(syntax);
        LineHighlighter { set, state, scopes: ScopeStack::new(), styles: ScopeStyles { theme } }
    }

    fn highlight_lines(mut self, code: &str) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for line in code.split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            let styled = if line.len() > LINE_BYTES_MAX { None } else { self.highlight(line).ok() };
            lines.push(styled.unwrap_or_else(|| Line::from(text.to_owned())));
        }
        lines
    }

    /// `line` ends with a line break, as the syntaxes expect, unless it is the last.
    fn highlight(&mut self, line: &str) -> Result<Line<'static>, ParsingError> {
        let operations = self.state.parse_line(line, self.set)?;
        let end = line.trim_end_matches('\n').len();
        let mut spans = SpanList::default();
        let mut start = 0;
        for (index, operation) in operations {
            let index = index.clamp(start, end);
            spans.push(&line[start..index], self.styles.style(&self.scopes));
            start = index;
            // A scope that cannot be applied leaves the colors of its surroundings.
            if self.scopes.apply(&operation).is_err() {
                break;
            }
        }
        spans.push(&line[start..end], self.styles.style(&self.scopes));
        Ok(Line::from(spans.0))
    }
}

/// Spans in which neighbors have different styles.
#[derive(Default)]
struct SpanList(Vec<Span<'static>>);

impl SpanList {
    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.0.push(Span::styled(text.to_owned(), style)),
        }
    }
}

/// What a piece of code is, as far as styles differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeRole {
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

/// Finds the style of a stack of scopes.
struct ScopeStyles<'a> {
    theme: &'a ViewTheme,
}

impl ScopeStyles<'_> {
    fn style(&self, scopes: &ScopeStack) -> Style {
        let syntax = &self.theme.syntax;
        match find_role(scopes) {
            CodeRole::Plain => self.theme.text,
            CodeRole::Comment => syntax.comment,
            CodeRole::String => syntax.string,
            CodeRole::Constant => syntax.constant,
            CodeRole::Keyword => syntax.keyword,
            CodeRole::Function => syntax.function,
            CodeRole::TypeName => syntax.type_name,
            CodeRole::Tag => syntax.tag,
            CodeRole::Added => self.theme.added,
            CodeRole::Removed => self.theme.removed,
        }
    }
}

/// The innermost scope with a role decides.
fn find_role(scopes: &ScopeStack) -> CodeRole {
    static SCOPES: OnceLock<Vec<(Scope, CodeRole)>> = OnceLock::new();
    let roles = SCOPES.get_or_init(|| {
        ROLES.iter().filter_map(|&(name, role)| Some((Scope::new(name).ok()?, role))).collect()
    });
    let role = |scope: &Scope| roles.iter().find(|it| it.0.is_prefix_of(*scope)).map(|it| it.1);
    scopes.as_slice().iter().rev().find_map(role).unwrap_or(CodeRole::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ColorDepth;

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
        let wide = format!("fn a() {{}}\n{}\nfn b() {{}}", "x".repeat(LINE_BYTES_MAX + 1));
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
