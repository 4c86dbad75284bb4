//! Finds the marks that the simulator puts into its messages, without parsing them.

use memchr::memmem;

/// The number that follows `key` in a text, as in `"n":12`.
pub(super) fn number_after(text: &[u8], key: &str) -> Option<u64> {
    let at = memmem::find(text, key.as_bytes())? + key.len();
    let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut number = None;
    for digit in digits {
        number = Some(number.unwrap_or(0) * 10 + u64::from(digit - b'0'));
    }
    number
}

/// The mark of an update, an ask or an unlogged notification.
pub(super) fn find_mark(text: &[u8]) -> Option<u64> {
    number_after(text, "\"n\":")
}

/// The mark of a client's request, which agents copy into their response.
pub(super) fn find_token(text: &[u8]) -> Option<u64> {
    number_after(text, "\"token\":")
}

/// The mark of a prompt. A digest before the prompt contains the marks of others, so the last one counts.
pub(super) fn find_prompt(text: &[u8]) -> Option<u64> {
    let last = memmem::rfind(text, b"p#")?;
    number_after(&text[last..], "p#")
}

/// The mark of a client's answer to an ask.
pub(super) fn find_choice(text: &[u8]) -> Option<u64> {
    number_after(text, "choice#")
}

pub(super) fn contains(text: &[u8], what: &str) -> bool {
    memmem::find(text, what.as_bytes()).is_some()
}
