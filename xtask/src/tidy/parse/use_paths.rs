//! Flattens `use` declarations: `a::{b, c::D as E}` is the paths `a::b` and `a::c::D`.

use super::tokens::Token;

#[derive(Debug, PartialEq)]
pub(crate) struct UsePath<'a> {
    pub(crate) segments: Vec<&'a str>,
    /// The name under which the last segment is imported.
    pub(crate) name: &'a str,
}

/// The paths of the declaration whose tokens start behind `use`.
pub(crate) fn parse_use<'a>(tokens: &[Token<'a>]) -> Vec<UsePath<'a>> {
    let mut paths = Vec::new();
    collect_paths(tokens, 0, &[], &mut paths);
    paths
}

/// Returns the position of the token that ended the branch: `,`, `}`, `;`, or the end.
fn collect_paths<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    paths: &mut Vec<UsePath<'a>>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                at = collect_branches(tokens, at + 1, &segments, paths);
                return at;
            }
            "," | "}" | ";" => break,
            "::" => {}
            "as" => {
                at += 1;
                name = tokens.get(at).map(|it| it.text);
            }
            segment => segments.push(segment),
        }
        at += 1;
    }
    if let Some(last) = segments.last().copied()
        && prefix.len() < segments.len()
    {
        paths.push(UsePath { segments, name: name.unwrap_or(last) });
    }
    at
}

/// Returns the position behind the closing brace.
fn collect_branches<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    paths: &mut Vec<UsePath<'a>>,
) -> usize {
    loop {
        at = collect_paths(tokens, at, prefix, paths);
        match tokens.get(at).map(|it| it.text) {
            Some(",") => at += 1,
            Some("}") => return at + 1,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tokens::tokenize, *};

    fn paths(source: &str) -> Vec<String> {
        let tokens = tokenize(source);
        let shown = |it: UsePath<'_>| format!("{} as {}", it.segments.join("::"), it.name);
        parse_use(&tokens).into_iter().map(shown).collect()
    }

    #[test]
    fn nested_imports_are_flattened() {
        let expected =
            ["crate::a::B as B", "crate::c::d as d", "crate::c::E as F", "crate::g as g"];
        assert_eq!(paths("crate::{a::B, c::{d, E as F}, g}; x"), expected);
        assert_eq!(paths("super::super::a;"), ["super::super::a as a"]);
        assert_eq!(paths("a::{self, b};"), ["a::self as self", "a::b as b"]);
    }

    #[test]
    fn incomplete_import_ends() {
        assert_eq!(paths("a::{b, c"), ["a::b as b", "a::c as c"]);
    }
}
