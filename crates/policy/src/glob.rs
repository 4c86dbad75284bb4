//! Globs over names and paths, and paths as they are compared.

use crate::shell::Token;
use globset::{GlobBuilder, GlobMatcher, escape};

/// Why a text is no glob.
pub(crate) fn flaw(text: &str) -> Option<String> {
    let error = GlobBuilder::new(text).build().err()?;
    Some(format!("`{text}` is no glob: {}", error.kind()))
}

/// Whether one of the globs matches a name; `*` matches anything in it.
pub(crate) fn matches_name(globs: &[String], name: &str) -> bool {
    globs.iter().any(|it| build(it, false, false).is_some_and(|it| it.is_match(name)))
}

/// The same without case: servers and tools are known under several spellings.
pub(crate) fn resembles_name(globs: &[String], name: &str) -> bool {
    globs.iter().any(|it| build(it, false, true).is_some_and(|it| it.is_match(name)))
}

/// A glob that matches this text and no other. `escape` of the crate leaves backslashes as they are.
pub(crate) fn exactly(text: &str) -> String {
    text.split('\\').map(escape).collect::<Vec<_>>().join(r"\\")
}

/// A learned rule comes from the journal: what cannot be read there matches nothing.
fn build(glob: &str, slashes_stay: bool, ignores_case: bool) -> Option<GlobMatcher> {
    let mut glob = GlobBuilder::new(glob);
    glob.literal_separator(slashes_stay).backslash_escape(true).case_insensitive(ignores_case);
    glob.build().ok().map(|it| it.compile_matcher())
}

/// What relative paths and `~` mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) home: Option<&'a str>,
}

impl Place<'_> {
    /// A path from the root on, without `.`, `..` and doubled slashes. Links are not followed:
    /// nothing here looks at the disk.
    pub(crate) fn absolute(&self, path: &str) -> String {
        let path = path.strip_prefix("file://").unwrap_or(path);
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                normal(&format!("{home}{rest}"))
            }
            _ if path.starts_with('/') => normal(path),
            _ => normal(&format!("{}/{path}", self.cwd)),
        }
    }

    /// Globs that match paths which are [absolute](Self::absolute): all of an allow.
    pub(crate) fn inside(&self, globs: &[String]) -> Paths {
        let matcher = |it: &String| build(&self.absolute_glob(it), true, false);
        Paths { matchers: globs.iter().filter_map(matcher).collect(), tokens: Vec::new() }
    }

    /// The same for a deny or an ask: what forbids the contents of a folder forbids the folder, and
    /// case makes no difference, as on many disks.
    pub(crate) fn touching(&self, globs: &[String]) -> Paths {
        let folders = globs.iter().filter_map(|it| it.strip_suffix("/**"));
        let all = globs.iter().map(String::as_str).chain(folders.filter(|it| !it.is_empty()));
        let all: Vec<String> = all.map(|it| self.absolute_glob(it)).collect();
        let matchers = all.iter().filter_map(|it| build(it, true, true)).collect();
        Paths { matchers, tokens: all.iter().map(|it| glob_tokens(it)).collect() }
    }

    fn absolute_glob(&self, glob: &str) -> String {
        let cwd = escape(self.cwd);
        let home = self.home.map(escape);
        Place { cwd: &cwd, home: home.as_deref() }.absolute(glob)
    }
}

/// Globs that are ready to be asked.
pub(crate) struct Paths {
    matchers: Vec<GlobMatcher>,
    tokens: Vec<Vec<Token>>,
}

impl Paths {
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.matchers.iter().any(|it| it.is_match(path))
    }

    /// The pieces of each glob, for words that could become a path.
    pub(crate) fn tokens(&self) -> &[Vec<Token>] {
        &self.tokens
    }
}

/// A glob as pieces; what is not plain in it may be more than the glob allows.
fn glob_tokens(glob: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        let (token, length) = match next {
            '*' if rest.starts_with("**/") => {
                tokens.extend([Token::Maybe(2), Token::Any]);
                (Token::Char('/'), 3)
            }
            '*' if rest.starts_with("**") => (Token::Any, 2),
            '*' => (Token::Segment, 1),
            '?' => (Token::One, 1),
            '[' => (Token::One, rest[1..].find(']').map_or(1, |it| it + 2)),
            '{' => (Token::Any, rest.find('}').map_or(1, |it| it + 1)),
            '\\' => {
                let escaped = rest[1..].chars().next();
                (escaped.map_or(Token::Any, Token::Char), 1 + escaped.map_or(0, char::len_utf8))
            }
            it => (Token::Char(it), it.len_utf8()),
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn normal(path: &str) -> String {
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
        HERE.inside(&[glob.to_owned()]).matches(path)
    }

    fn touching(glob: &str, path: &str) -> bool {
        HERE.touching(&[glob.to_owned()]).matches(path)
    }

    const HERE: Place<'_> = Place { cwd: "/user/[x]", home: Some("/user") };

    #[test]
    fn a_path_is_taken_from_the_root() {
        assert_eq!(HERE.absolute("src/./b//c.rs"), "/user/[x]/src/b/c.rs");
        assert_eq!(HERE.absolute("src/../../../../../etc/x"), "/etc/x");
        assert_eq!(HERE.absolute("~/.ssh/id"), "/user/.ssh/id");
        assert_eq!(HERE.absolute("~other/x"), "/user/[x]/~other/x");
        assert_eq!(HERE.absolute("file:///etc/../x"), "/x");
    }

    #[test]
    fn a_relative_glob_is_below_the_folder_whatever_its_name_is() {
        assert!(inside("src/**", "/user/[x]/src/a/b.rs"));
        assert!(!inside("src/**", "/user/x/src/a/b.rs"));
        assert!(!inside("src/*", "/user/[x]/src/a/b.rs"), "`*` stays in its folder");
        assert!(inside("./src/../lib/*.rs", "/user/[x]/lib/b.rs"));
        assert!(inside("**/*.rs", "/user/[x]/b.rs"));
        assert!(inside("~/.ssh/**", "/user/.ssh/id"));
    }

    #[test]
    fn what_forbids_the_contents_of_a_folder_forbids_the_folder() {
        assert!(touching("~/.ssh/**", "/user/.ssh"));
        assert!(!inside("~/.ssh/**", "/user/.ssh"));
        assert!(!touching("~/.ssh/**", "/user/.sshx"));
    }

    #[test]
    fn an_exact_glob_matches_nothing_else() {
        let odd = "/a/[b]*{c}?";
        assert!(inside(&exactly(odd), odd));
        assert!(!inside(&exactly(odd), "/a/b{c}x"));
        assert!(matches_name(&[exactly("mcp__a__*")], "mcp__a__*"));
        for text in [r"/a\*", r"/a\\{b", r"/\", r"/a\[b]"] {
            assert!(inside(&exactly(text), text), "{text}");
        }
        assert!(!inside(&exactly(r"/a\*"), "/a[other]"));
        assert!(!matches_name(&[exactly("mcp__a__*")], "mcp__a__b"));
    }
}
