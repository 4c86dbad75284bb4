//! Globs over names and paths, and the normal form in which paths are compared.

use crate::shell::GlobToken;
use globset::{GlobBuilder, GlobMatcher, escape};

/// Why a text is not a valid glob; `None` if it is one.
pub(crate) fn find_glob_error(text: &str) -> Option<String> {
    let error = GlobBuilder::new(text).build().err()?;
    Some(format!("`{text}` is not a valid glob: {}", error.kind()))
}

/// Whether one of the globs matches a name; `*` matches any characters.
pub(crate) fn matches_name(globs: &[String], name: &str) -> bool {
    globs.iter().any(|it| GlobOptions::NAME.build(it).is_some_and(|it| it.is_match(name)))
}

/// The same without regard to case, because servers and tools have several spellings.
pub(crate) fn matches_name_in_any_case(globs: &[String], name: &str) -> bool {
    globs
        .iter()
        .any(|it| GlobOptions::NAME_IN_ANY_CASE.build(it).is_some_and(|it| it.is_match(name)))
}

/// A glob that matches only this text. `globset::escape` does not escape backslashes, so they are
/// escaped here.
pub(crate) fn escape_glob(text: &str) -> String {
    text.split('\\').map(escape).collect::<Vec<_>>().join(r"\\")
}

struct GlobOptions {
    is_path: bool,
    ignores_case: bool,
}

impl GlobOptions {
    const NAME: GlobOptions = GlobOptions { is_path: false, ignores_case: false };
    const NAME_IN_ANY_CASE: GlobOptions = GlobOptions { is_path: false, ignores_case: true };
    const PATH: GlobOptions = GlobOptions { is_path: true, ignores_case: false };

    /// Compiles a glob. An invalid glob, which only a learned rule from the journal can have,
    /// matches nothing.
    fn build(&self, glob: &str) -> Option<GlobMatcher> {
        let mut glob = GlobBuilder::new(glob);
        glob.literal_separator(self.is_path)
            .backslash_escape(true)
            .case_insensitive(self.ignores_case);
        glob.build().ok().map(|it| it.compile_matcher())
    }
}

/// The directories that relative paths and `~` refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathContext<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) home: Option<&'a str>,
}

impl PathContext<'_> {
    /// The absolute path without `.`, `..` and repeated slashes. Symbolic links are not resolved,
    /// because this crate does not access the disk.
    pub(crate) fn to_absolute(self, path: &str) -> String {
        let decoded = path.strip_prefix("file://").map(decode_uri_path);
        let path = decoded.as_deref().unwrap_or(path);
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                normalize_path(&format!("{home}{rest}"))
            }
            _ if path.starts_with('/') => normalize_path(path),
            _ => normalize_path(&format!("{}/{path}", self.cwd)),
        }
    }

    /// A matcher for an allow rule. It expects [absolute](Self::to_absolute) paths.
    pub(crate) fn match_inside(&self, globs: &[String]) -> PathMatcher {
        let matcher = |it: &String| GlobOptions::PATH.build(&self.to_absolute_glob(it));
        let matchers = globs.iter().filter_map(matcher).collect();
        PathMatcher { matchers, tokens: Vec::new(), ignores_case: false }
    }

    /// A matcher for a deny or ask rule: a glob for the contents of a folder also matches the
    /// folder, and case is ignored, as on many file systems. `globset` ignores only the case of ASCII letters.
    pub(crate) fn match_touched(&self, globs: &[String]) -> PathMatcher {
        let folders = globs.iter().filter_map(|it| it.strip_suffix("/**"));
        let all = globs.iter().map(String::as_str).chain(folders.filter(|it| !it.is_empty()));
        let all: Vec<String> = all.map(|it| self.to_absolute_glob(it)).collect();
        let matcher = |it: &String| GlobOptions::PATH.build(&it.to_lowercase());
        let matchers = all.iter().filter_map(matcher).collect();
        let tokens = all.iter().map(|it| tokenize_glob(it)).collect();
        PathMatcher { matchers, tokens, ignores_case: true }
    }

    fn to_absolute_glob(self, glob: &str) -> String {
        let cwd = escape(self.cwd);
        let home = self.home.map(escape);
        PathContext { cwd: &cwd, home: home.as_deref() }.to_absolute(glob)
    }
}

/// The path in the rest of a `file://` URI, which may begin with a host. `%20` stands for a space; `%` without two
/// hexadecimal digits stands for itself.
fn decode_uri_path(rest: &str) -> String {
    let rest = rest.find('/').map_or(rest, |it| &rest[it..]).as_bytes();
    let digit = |it: Option<&u8>| it.and_then(|it| char::from(*it).to_digit(16));
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Some(byte) = rest.get(at) {
        let escaped = (*byte == b'%').then(|| digit(rest.get(at + 1)).zip(digit(rest.get(at + 2))));
        let escaped = escaped.flatten().and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Compiled globs over absolute paths.
pub(crate) struct PathMatcher {
    /// If case is ignored, the globs are in lowercase.
    matchers: Vec<GlobMatcher>,
    tokens: Vec<Vec<GlobToken>>,
    ignores_case: bool,
}

impl PathMatcher {
    pub(crate) fn matches(&self, path: &str) -> bool {
        let lowercase = self.ignores_case.then(|| path.to_lowercase());
        let path = lowercase.as_deref().unwrap_or(path);
        self.matchers.iter().any(|it| it.is_match(path))
    }

    /// The tokens of each glob, to compare with words that a shell expands to paths.
    pub(crate) fn tokens(&self) -> &[Vec<GlobToken>] {
        &self.tokens
    }
}

/// Splits a glob into tokens. Classes and alternatives become tokens that match at least as much.
fn tokenize_glob(glob: &str) -> Vec<GlobToken> {
    let mut tokens = Vec::new();
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        let (token, length) = match next {
            '*' if rest.starts_with("**/") => {
                tokens.extend([GlobToken::Maybe(2), GlobToken::Any]);
                (GlobToken::Char('/'), 3)
            }
            '*' if rest.starts_with("**") => (GlobToken::Any, 2),
            '*' => (GlobToken::Segment, 1),
            '?' => (GlobToken::One, 1),
            '[' => (GlobToken::One, rest[1..].find(']').map_or(1, |it| it + 2)),
            '{' => (GlobToken::Any, rest.find('}').map_or(1, |it| it + 1)),
            '\\' => {
                let escaped = rest[1..].chars().next();
                (
                    escaped.map_or(GlobToken::Any, GlobToken::Char),
                    1 + escaped.map_or(0, char::len_utf8),
                )
            }
            it => (GlobToken::Char(it), it.len_utf8()),
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn normalize_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(glob: &str, path: &str) -> bool {
        CONTEXT.match_inside(&[glob.to_owned()]).matches(path)
    }

    fn touching(glob: &str, path: &str) -> bool {
        CONTEXT.match_touched(&[glob.to_owned()]).matches(path)
    }

    const CONTEXT: PathContext<'_> = PathContext { cwd: "/user/[x]", home: Some("/user") };

    #[test]
    fn path_becomes_absolute_and_normal() {
        assert_eq!(CONTEXT.to_absolute("src/./b//c.rs"), "/user/[x]/src/b/c.rs");
        assert_eq!(CONTEXT.to_absolute("src/../../../../../etc/x"), "/etc/x");
        assert_eq!(CONTEXT.to_absolute("~/.ssh/id"), "/user/.ssh/id");
        assert_eq!(CONTEXT.to_absolute("~other/x"), "/user/[x]/~other/x");
        assert_eq!(CONTEXT.to_absolute("file:///etc/../x"), "/x");
        assert_eq!(CONTEXT.to_absolute("file://host/a%20b/%2e%2E/%C3%BC/100%"), "/ü/100%");
    }

    #[test]
    fn relative_glob_is_below_the_folder_even_if_its_name_has_brackets() {
        assert!(inside("src/**", "/user/[x]/src/a/b.rs"));
        assert!(!inside("src/**", "/user/x/src/a/b.rs"));
        assert!(!inside("src/*", "/user/[x]/src/a/b.rs"), "`*` stays in its folder");
        assert!(inside("./src/../lib/*.rs", "/user/[x]/lib/b.rs"));
        assert!(inside("**/*.rs", "/user/[x]/b.rs"));
        assert!(inside("~/.ssh/**", "/user/.ssh/id"));
    }

    #[test]
    fn deny_of_the_contents_of_a_folder_covers_the_folder() {
        assert!(touching("~/.ssh/**", "/user/.ssh"));
        assert!(!inside("~/.ssh/**", "/user/.ssh"));
        assert!(!touching("~/.ssh/**", "/user/.sshx"));
    }

    #[test]
    fn escaped_glob_matches_only_its_text() {
        let odd = "/a/[b]*{c}?";
        assert!(inside(&escape_glob(odd), odd));
        assert!(!inside(&escape_glob(odd), "/a/b{c}x"));
        assert!(matches_name(&[escape_glob("mcp__a__*")], "mcp__a__*"));
        for text in [r"/a\*", r"/a\\{b", r"/\", r"/a\[b]"] {
            assert!(inside(&escape_glob(text), text), "{text}");
        }
        assert!(!inside(&escape_glob(r"/a\*"), "/a[other]"));
        assert!(!matches_name(&[escape_glob("mcp__a__*")], "mcp__a__b"));
    }
}
