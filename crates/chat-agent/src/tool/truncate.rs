//! Truncates text for the model. The beginning and the end are kept, and the gap is described.

/// About 8,000 tokens, so that one call does not fill a small context window.
pub(crate) const OUTPUT_CHARS_MAX: usize = 30_000;

/// Returns at most `max` characters of the text. `advice` says how to get the omitted part.
pub(crate) fn truncate_middle(text: &str, max: usize, advice: &str) -> String {
    // A text has at least as many bytes as characters.
    if text.len() <= max {
        return text.to_owned();
    }
    let chars = text.chars().count();
    if chars <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub(describe_gap(chars, advice).chars().count());
    let (front, back) = (room / 2, room - room / 2);
    let head = &text[..char_offset(text, front)];
    let tail = &text[char_offset(text, chars - back)..];
    let whole = format!("{head}{}{tail}", describe_gap(chars - front - back, advice));
    // The limit holds even if it is shorter than the description of the gap.
    whole.chars().take(max).collect()
}

/// Joins the two ends of an output whose middle was not stored.
pub(super) fn join_ends(head: &str, tail: &str, omitted_bytes: usize) -> String {
    format!("{head}\n[… {omitted_bytes} bytes are left out here …]\n{tail}")
}

fn describe_gap(chars: usize, advice: &str) -> String {
    format!("\n[… {chars} characters are left out here: {advice} …]\n")
}

/// Returns the byte offset of a character.
fn char_offset(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_text_is_truncated_and_the_gap_is_described() {
        assert_eq!(truncate_middle("short", 5, "advice"), "short");
        assert_eq!(truncate_middle("äöü", 3, "advice"), "äöü");
        let long = format!("{}{}", "a".repeat(100), "z".repeat(100));
        let cut = truncate_middle(&long, 100, "read on");
        assert!((90..=100).contains(&cut.chars().count()), "{cut}");
        assert!(cut.contains(" characters are left out here: read on …]"), "{cut}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn truncated_text_is_bounded_and_keeps_both_ends(text in "(?s).{0,400}", max in 120_usize..300) {
            let cut = truncate_middle(&text, max, "advice");
            prop_assert!(cut.chars().count() <= max);
            if text.chars().count() <= max {
                prop_assert_eq!(cut, text);
            } else {
                let (head, rest) = cut.split_once("\n[… ").unwrap();
                let (omitted, rest) = rest.split_once(" characters are left out here").unwrap();
                let (_, tail) = rest.rsplit_once(" …]\n").unwrap_or(("", rest));
                prop_assert!(text.starts_with(head) && !head.is_empty());
                prop_assert!(text.ends_with(tail));
                let omitted: usize = omitted.parse().unwrap();
                let kept = head.chars().count() + tail.chars().count();
                prop_assert_eq!(kept + omitted, text.chars().count());
            }
        }
    }
}
