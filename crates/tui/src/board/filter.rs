//! Finds sessions by a few characters of their title, project, agent, host or state.

use super::BoardRow;
use crate::text::sanitize_line;
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};

/// A typed text. Each of its words must match one of the fields of a session; `!word` must match none.
pub(crate) struct SessionFilter {
    pattern: Pattern,
    matcher: Matcher,
    chars: Vec<char>,
}

impl SessionFilter {
    /// `None` if the text is empty: then all sessions match.
    pub(crate) fn parse(text: &str) -> Option<SessionFilter> {
        let pattern = Pattern::parse(text, CaseMatching::Ignore, Normalization::Smart);
        let matcher = || Matcher::new(Config::DEFAULT);
        (!pattern.atoms.is_empty()).then(|| SessionFilter {
            pattern,
            matcher: matcher(),
            chars: Vec::new(),
        })
    }

    /// How well the session matches; `None` if it does not.
    pub(crate) fn score(&mut self, row: &BoardRow) -> Option<u32> {
        let project = row.row.cwd.rsplit(['/', '\\']).find(|it| !it.is_empty());
        let fields = [
            (row.row.display_title(), 2),
            (project.unwrap_or(&row.row.cwd), 1),
            (&row.row.agent, 1),
            (row.row.host.as_deref().unwrap_or_default(), 1),
            (row.group.label(), 1),
            (&row.row.session_id, 1),
        ];
        let mut total = 0;
        for atom in &self.pattern.atoms {
            let mut scores = fields.iter().map(|(text, weight)| {
                let text = Utf32Str::new(text, &mut self.chars);
                Some(u32::from(atom.score(text, &mut self.matcher)?) * weight)
            });
            total += if atom.negative {
                scores.all(|it| it.is_some()).then_some(0)?
            } else {
                scores.flatten().max()?
            };
        }
        Some(total)
    }

    /// The positions of the clusters of a text that match, in order.
    pub(crate) fn matched_clusters(&mut self, text: &str) -> Vec<u32> {
        let text = sanitize_line(text);
        let mut matched = Vec::new();
        for atom in self.pattern.atoms.iter().filter(|it| !it.negative) {
            let text = Utf32Str::new(&text, &mut self.chars);
            atom.indices(text, &mut self.matcher, &mut matched);
        }
        matched.sort_unstable();
        matched.dedup();
        matched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{board::SessionTable, hub::SessionRow, test_data::session_row};

    fn score(filter: &str, row: SessionRow) -> Option<u32> {
        let mut table = SessionTable::default();
        table.insert(row);
        SessionFilter::parse(filter).unwrap().score(&table.rows()[0])
    }

    fn parser_session() -> SessionRow {
        SessionRow {
            name: Some("Fix the lexer".into()),
            cwd: "/user/me/src/parser".into(),
            agent: "claude".into(),
            host: Some("build-1".into()),
            ..session_row("s-1")
        }
    }

    #[test]
    fn each_word_matches_a_field_and_excluded_words_none() {
        for (filter, is_match) in [
            ("lexer", true),
            ("FXLX", true),
            ("lexer claude", true),
            ("parser idle", true),
            ("build-1", true),
            ("lexer codex", false),
            ("!codex", true),
            ("lexer !claude", false),
            // The directories above the project match nothing: all sessions would have them.
            ("user", false),
        ] {
            assert_eq!(score(filter, parser_session()).is_some(), is_match, "{filter}");
        }
        assert!(SessionFilter::parse("  ").is_none());
    }

    #[test]
    fn title_counts_more_than_the_project() {
        let in_title = SessionRow { name: Some("parser".into()), ..session_row("s-1") };
        let in_project = SessionRow { cwd: "/src/parser".into(), ..session_row("s-2") };
        assert!(score("parser", in_project) < score("parser", in_title));
    }

    #[test]
    fn matched_characters_are_counted_by_clusters() {
        let mut filter = SessionFilter::parse("lex fi").unwrap();
        assert_eq!(filter.matched_clusters("Fix the lexer"), [0, 1, 8, 9, 10]);
        let mut filter = SessionFilter::parse("b").unwrap();
        assert_eq!(filter.matched_clusters("e\u{301}漢b"), [2]);
    }
}
