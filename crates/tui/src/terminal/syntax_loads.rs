//! Loads syntaxes in the background, one after the other.

use crate::{page::AppInput, text::CodeSample};
use std::collections::VecDeque;
use tokio::task::JoinHandle;

/// A syntax that is being loaded, and the next ones. The interface asks for few at a time.
#[derive(Default)]
pub(super) struct SyntaxLoads {
    pub(super) running: Option<JoinHandle<AppInput>>,
    next: VecDeque<CodeSample>,
}

impl SyntaxLoads {
    pub(super) fn request(&mut self, sample: CodeSample) {
        self.next.push_back(sample);
        self.start_next();
    }

    /// Starts the next one, unless one runs.
    pub(super) fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(sample) = self.next.pop_front() else { return };
        self.running = Some(tokio::task::spawn_blocking(move || {
            sample.load_syntax();
            AppInput::SyntaxLoaded(sample.language)
        }));
    }
}
