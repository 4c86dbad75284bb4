//! What must not be shown although a server may repeat it: the key.

use jackfield_wire::redact::Redactor;

/// Hides the key, and whatever looks like one.
#[derive(Clone, Default)]
pub(super) struct Secrets(Redactor);

impl Secrets {
    pub(super) fn of(key: &str) -> Secrets {
        Secrets(Redactor::new(&[("OPENAI_API_KEY".to_owned(), key.to_owned())]))
    }

    pub(super) fn hide(&self, text: &str) -> String {
        self.0.redact(text)
    }
}
