//! Which syntaxes can be used at once. Loading one takes up to a second, so code is drawn without colors until its
//! syntax is loaded in the background.

use super::{cache::ParsedCode, find_syntax, is_set_loaded};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use syntect::parsing::{SyntaxReference, SyntaxSet};

/// Syntaxes that wait at a time; others are asked for when their code is drawn again.
const WAITING_MAX: usize = 16;

/// The syntaxes that were loaded, and those that are needed. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyntaxLoading(Arc<Mutex<LoadingState>>);

#[derive(Debug, Default)]
struct LoadingState {
    /// Names of syntaxes.
    loaded: BTreeSet<String>,
    /// Languages that are being loaded.
    waiting: BTreeSet<String>,
    /// Of these, those that were not asked for yet.
    needed: Vec<CodeSample>,
}

/// Code whose syntax is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeSample {
    pub(crate) language: String,
    code: String,
}

impl SyntaxLoading {
    /// The syntax of a language if it is loaded. If not, it is needed.
    pub(super) fn find_loaded(
        &self,
        language: &str,
        code: &str,
    ) -> Option<(&'static SyntaxSet, &'static SyntaxReference)> {
        let mut state = self.lock();
        if is_set_loaded() {
            let (set, syntax) = find_syntax(language)?;
            if state.loaded.contains(&syntax.name) {
                return Some((set, syntax));
            }
        }
        let can_wait = state.waiting.len() < WAITING_MAX;
        if can_wait && state.waiting.insert(language.to_owned()) {
            let sample = CodeSample { language: language.to_owned(), code: code.to_owned() };
            state.needed.push(sample);
        }
        None
    }

    /// The syntaxes that were needed since the last call.
    pub(crate) fn take_needed(&self) -> Vec<CodeSample> {
        std::mem::take(&mut self.lock().needed)
    }

    /// [`CodeSample::load_syntax`] has ended.
    pub(crate) fn on_loaded(&self, language: &str) {
        let mut state = self.lock();
        state.waiting.remove(language);
        if let Some((_, syntax)) = find_syntax(language) {
            state.loaded.insert(syntax.name.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, LoadingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CodeSample {
    /// Loads the syntax. The regular expressions of a syntax are compiled when it is used, so the code is parsed.
    pub(crate) fn load_syntax(&self) {
        if let Some((set, syntax)) = find_syntax(&self.language) {
            ParsedCode::new(syntax).append(set, &self.code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{ColorDepth, ViewTheme, highlight_code};

    #[test]
    fn code_has_no_colors_until_its_syntax_is_loaded() {
        let (mut theme, loading) = (ViewTheme::new(ColorDepth::Ansi16), SyntaxLoading::default());
        theme.syntax_loading = Some(loading.clone());
        let count = |language: &str| highlight_code(language, "fn x() {}", &theme)[0].spans.len();
        assert_eq!((count("rust"), count("rust"), count("text")), (1, 1, 1));
        let needed = loading.take_needed();
        assert_eq!(needed.len(), 1);
        needed[0].load_syntax();
        loading.on_loaded(&needed[0].language);
        assert!(count("rust") > 1 && count("src/main.rs") > 1);
        // What has no syntax is known when the syntaxes are loaded.
        assert_eq!(count("unknown"), 1);
        assert_eq!(loading.take_needed(), []);
    }

    #[test]
    fn number_of_syntaxes_that_wait_is_limited() {
        let loading = SyntaxLoading::default();
        for number in 0..100 {
            loading.find_loaded(&format!("language-{number}"), "x\n");
        }
        assert!(loading.take_needed().len() <= WAITING_MAX);
    }
}
