//! What the model is told is bounded: the beginning and the end stay, and the gap says what it was.

/// About 8,000 tokens: a call must not push the conversation out of a small window.
pub(crate) const OUTPUT_CHARS_MAX: usize = 30_000;

/// A text of at most `max` characters; `way` tells how to get what was left out.
pub(crate) fn cut(text: &str, max: usize, way: &str) -> String {
    // A text has at least as many bytes as characters.
    if text.len() <= max {
        return text.to_owned();
    }
    let chars = text.chars().count();
    if chars <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub(gap(chars, way).chars().count());
    let (front, back) = (room / 2, room - room / 2);
    let head = &text[..place(text, front)];
    let tail = &text[place(text, chars - back)..];
    let whole = format!("{head}{}{tail}", gap(chars - front - back, way));
    // A bound smaller than the words about it still holds.
    whole.chars().take(max).collect()
}

/// The two ends of something whose middle was not kept.
pub(super) fn join(head: &str, tail: &str, bytes_left_out: usize) -> String {
    format!("{head}\n[… {bytes_left_out} bytes are left out here …]\n{tail}")
}

fn gap(chars: usize, way: &str) -> String {
    format!("\n[… {chars} characters are left out here: {way} …]\n")
}

/// Where the character with this number begins.
fn place(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_text_is_left_alone_and_a_long_one_says_what_is_missing() {
        assert_eq!(cut("short", 5, "way"), "short");
        assert_eq!(cut("äöü", 3, "way"), "äöü");
        let long = format!("{}{}", "a".repeat(100), "z".repeat(100));
        let told = cut(&long, 100, "read on");
        assert!((90..=100).contains(&told.chars().count()), "{told}");
        assert!(told.contains(" characters are left out here: read on …]"), "{told}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_cut_text_is_bounded_and_keeps_both_ends(text in "(?s).{0,400}", max in 120_usize..300) {
            let told = cut(&text, max, "the way");
            prop_assert!(told.chars().count() <= max);
            if text.chars().count() <= max {
                prop_assert_eq!(told, text);
            } else {
                let (head, rest) = told.split_once("\n[… ").unwrap();
                let (left_out, rest) = rest.split_once(" characters are left out here").unwrap();
                let (_, tail) = rest.rsplit_once(" …]\n").unwrap_or(("", rest));
                prop_assert!(text.starts_with(head) && !head.is_empty());
                prop_assert!(text.ends_with(tail));
                let left_out: usize = left_out.parse().unwrap();
                let kept = head.chars().count() + tail.chars().count();
                prop_assert_eq!(kept + left_out, text.chars().count());
            }
        }
    }
}
