//! Parses code line by line and keeps the result: code that grows, as in a message that arrives, is parsed once, and
//! not again for each frame. The result is the same as without.

use super::roles::{CodeRole, find_role};
use std::collections::VecDeque;
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

/// A longer line, such as minified code, has no roles.
const LINE_BYTES_MAX: usize = 1_000;
/// The bytes of code that are kept. The roles of their lines take some times as much.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// The pieces of a line: the length in bytes and the role of each.
pub(super) type LineRoles = Vec<(usize, CodeRole)>;

/// Parsed code, in the order of its last request.
#[derive(Default)]
pub(super) struct ParsedCodeCache {
    /// The last is the newest.
    entries: VecDeque<ParsedCode>,
    bytes: usize,
}

impl ParsedCodeCache {
    /// The roles of the lines of `code`, each of which ends with a line break.
    pub(super) fn parse(
        &mut self,
        set: &SyntaxSet,
        syntax: &SyntaxReference,
        code: &str,
    ) -> Vec<LineRoles> {
        let is_start =
            |it: &ParsedCode| it.syntax == syntax.name && code.starts_with(it.code.as_str());
        let longest = (0..self.entries.len())
            .filter(|&it| is_start(&self.entries[it]))
            .max_by_key(|&it| self.entries[it].code.len());
        let entry = longest.and_then(|it| self.entries.remove(it));
        let mut entry = entry.unwrap_or_else(|| ParsedCode::new(syntax));
        self.bytes -= entry.code.len();
        entry.append(set, &code[entry.code.len()..]);
        let lines = entry.lines.clone();
        self.bytes += entry.code.len();
        self.entries.push_back(entry);
        while self.bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.code.len();
        }
        lines
    }
}

/// Code and the state of the parser after it.
pub(super) struct ParsedCode {
    syntax: String,
    code: String,
    lines: Vec<LineRoles>,
    state: ParseState,
    scopes: ScopeStack,
}

impl ParsedCode {
    pub(super) fn new(syntax: &SyntaxReference) -> ParsedCode {
        ParsedCode {
            syntax: syntax.name.clone(),
            code: String::new(),
            lines: Vec::new(),
            state: ParseState::new(syntax),
            scopes: ScopeStack::new(),
        }
    }

    pub(super) fn append(&mut self, set: &SyntaxSet, code: &str) {
        for line in code.split_inclusive('\n') {
            let roles = if line.len() > LINE_BYTES_MAX {
                vec![(line.len(), CodeRole::Plain)]
            } else {
                self.parse_line(set, line)
            };
            self.lines.push(roles);
        }
        self.code.push_str(code);
    }

    fn parse_line(&mut self, set: &SyntaxSet, line: &str) -> LineRoles {
        let mut roles = LineRoles::new();
        let mut start = 0;
        let mut push = |end: usize, scopes: &ScopeStack| {
            let end = end.clamp(start, line.len());
            if start < end {
                roles.push((end - start, find_role(scopes)));
                start = end;
            }
        };
        // Neither a line nor a scope that cannot be parsed changes the text.
        for (index, operation) in self.state.parse_line(line, set).unwrap_or_default() {
            push(index, &self.scopes);
            if self.scopes.apply(&operation).is_err() {
                break;
            }
        }
        push(line.len(), &self.scopes);
        roles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_parts(parts: &[&str]) -> Vec<LineRoles> {
        let set = two_face::syntax::extra_newlines();
        let syntax = set.find_syntax_by_token("json").unwrap();
        let mut cache = ParsedCodeCache::default();
        let mut code = String::new();
        let mut lines = Vec::new();
        for part in parts {
            code.push_str(part);
            lines = cache.parse(&set, syntax, &code);
            assert_eq!(cache.entries.len(), 1);
            assert_eq!(cache.bytes, code.len());
        }
        lines
    }

    #[test]
    fn code_that_grows_is_parsed_as_if_it_came_at_once() {
        let parts = ["{\n", "\"a\": [1,\n2, // x\n", "\"b\"]\n", "}\n"];
        assert_eq!(parse_parts(&parts), parse_parts(&[&parts.concat()]));
    }

    #[test]
    fn oldest_code_is_dropped() {
        let set = two_face::syntax::extra_newlines();
        let syntax = set.find_syntax_plain_text();
        let mut cache = ParsedCodeCache::default();
        for number in 0..6 {
            let code = format!("{number}{}\n", "x".repeat(100_000));
            assert_eq!(cache.parse(&set, syntax, &code).len(), 1);
        }
        assert_eq!(cache.entries.len(), 5);
        assert_eq!(cache.entries.front().map(|it| &it.code[..1]), Some("1"));
    }
}
