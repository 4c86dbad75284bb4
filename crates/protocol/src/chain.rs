//! An error as people read it. What went wrong is often said by a cause and not by the error itself.

use std::error::Error;

/// An error and its causes, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{what}")]
    struct Told {
        what: &'static str,
        source: Option<Box<Told>>,
    }

    #[test]
    fn every_cause_is_told_behind_what_it_caused() {
        let cause = Told { what: "no space", source: None };
        let error = Told { what: "not written", source: Some(Box::new(cause)) };
        let error = Told { what: "not saved", source: Some(Box::new(error)) };
        assert_eq!(chain(&error), "not saved: not written: no space");
    }
}
