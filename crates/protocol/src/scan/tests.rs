//! The scanner beside `serde_json`: the same texts are JSON to both.

use super::{DEPTH_MAX, RoutingSlot, is_id, is_value, scan};
use crate::{malformed::MalformedFrame, strategy};
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn is_json_here(text: &str) -> bool {
    !matches!(scan(text), Err(MalformedFrame::NotJson { .. } | MalformedFrame::TooDeep))
}

fn is_json_to_serde(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok() && depth(text) <= DEPTH_MAX as usize
}

/// How many brackets are open at most, strings left out; only asked of valid JSON.
fn depth(text: &str) -> usize {
    let (mut open, mut most, mut in_string, mut escape) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escape => escape = false,
            b'\\' if in_string => escape = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => open += 1,
            b'}' | b']' if !in_string => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    most
}

proptest! {
    #[test]
    fn every_json_text_is_accepted(text in strategy::value()) {
        prop_assert!(is_json_to_serde(&text));
        prop_assert!(is_json_here(&text), "{:?}", scan(&text));
        prop_assert!(is_value(&text));
    }

    #[test]
    fn a_changed_json_text_is_read_as_serde_reads_it(
        text in strategy::mutated(strategy::value()),
    ) {
        prop_assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{:?}", scan(&text));
    }

    #[test]
    fn a_changed_message_is_read_as_serde_reads_it(
        text in strategy::mutated(strategy::message()),
    ) {
        prop_assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{:?}", scan(&text));
    }

    #[test]
    fn a_soup_of_tokens_is_read_as_serde_reads_it(
        text in r#"([\[\]{},: \n]|"a?"|true|null|-?[0-9.eE+]{1,4}|\\|"){0,12}"#,
    ) {
        prop_assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{:?}", scan(&text));
    }

    #[test]
    fn strings_are_read_as_serde_reads_them(
        inner in r#"(\\[\\"/bfnrtuUx]?|[0-9a-fA-F]{1,5}|[\x00-\x7f]|é|🦀|plain text){0,12}"#,
    ) {
        let text = format!("\"{inner}\"");
        prop_assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{:?}", scan(&text));
    }

    #[test]
    fn numbers_are_read_as_serde_reads_them(text in "[-+0-9.eE]{1,8}") {
        prop_assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{:?}", scan(&text));
        prop_assert_eq!(is_id(&text), is_json_to_serde(&text));
    }
}

#[test]
fn every_byte_is_judged_alike_wherever_it_stands_in_a_string() {
    for length in 0..20 {
        for at in 0..=length {
            for byte in 0..0x80_u8 {
                let mut inner = "x".repeat(length);
                inner.insert(at, char::from(byte));
                let text = format!("[\"{inner}\",1]");
                assert_eq!(is_json_here(&text), is_json_to_serde(&text), "{text:?}");
            }
        }
    }
}

#[test]
fn every_short_run_of_tokens_is_read_as_serde_reads_it() {
    const TOKENS: [&str; 8] = ["{", "}", "[", "]", ",", ":", r#""id""#, "1"];
    let mut runs = vec![String::new()];
    for _ in 0..6 {
        runs = runs.iter().flat_map(|run| TOKENS.map(|token| run.clone() + token)).collect();
        for text in &runs {
            assert_eq!(is_json_here(text), is_json_to_serde(text), "{text}");
        }
    }
}

#[test]
fn nesting_is_accepted_up_to_the_limit_and_refused_beyond() {
    let limit = DEPTH_MAX as usize;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let levels = open.matches(['[', '{']).count();
        let nested = |depth: usize| {
            let around = depth / levels;
            format!("{}7{}", open.repeat(around), close.repeat(around))
        };
        assert!(is_json_here(&nested(limit)), "{open}");
        assert_eq!(scan(&nested(limit + levels)).unwrap_err(), MalformedFrame::TooDeep, "{open}");
    }
}

#[test]
fn nesting_counts_the_objects_that_are_read_by_name() {
    let message = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"params":{{"update":{{"content":{open}{close}}}}}}}"#)
    };
    let left = DEPTH_MAX as usize - 3;
    assert!(scan(&message(left)).is_ok());
    assert_eq!(scan(&message(left + 1)).unwrap_err(), MalformedFrame::TooDeep);
}

#[test]
fn a_megabyte_of_brackets_is_refused_without_a_deep_stack() {
    for bracket in ["[", r#"{"params":"#] {
        assert_eq!(scan(&bracket.repeat(1 << 20)).unwrap_err(), MalformedFrame::TooDeep);
    }
}

#[test]
fn half_a_surrogate_pair_is_carried_where_nobody_reads_it() {
    assert!(scan(r#"{"x":"\ud800","\udc00":1}"#).is_ok());
}

#[test]
fn an_escaped_key_counts_as_what_it_decodes_to() {
    let found = scan(r#"{"\u0069d":7,"p\u0061rams":{"session\u0049d":"s"}}"#).unwrap();
    assert!(found.span(RoutingSlot::Id).is_some());
    assert!(found.span(RoutingSlot::SessionId).is_some());
    let twice = scan(r#"{"id":7,"i\u0064":8}"#).unwrap_err();
    assert_eq!(twice, MalformedFrame::Twice { key: "id" });
}

#[test]
fn a_byte_order_mark_is_no_json() {
    assert!(!is_json_here("\u{feff}{}"));
}

#[test]
fn what_is_no_json_is_reported_as_that_even_if_a_key_stands_twice() {
    assert!(!is_json_here(r#"{"id":1,"id":2"#));
    assert!(!is_json_here("[1"));
    assert_eq!(scan("[1]").unwrap_err(), MalformedFrame::NotAnObject);
}

#[test]
fn only_a_bare_value_on_one_line_is_a_value() {
    for value in ["{}", r#"{"a": [1, "b"]}"#, "true", "7", r#""\n""#] {
        assert!(is_value(value), "{value}");
    }
    for value in ["", " 7", "7 ", "[1,\n2]", "{\r}", "1,2", "{}{}"] {
        assert!(!is_value(value), "{value}");
    }
}

#[test]
fn only_a_bare_number_string_or_null_is_an_id() {
    for id in ["0", "-7", "1.5", "9223372036854775808", r#""""#, r#""a\n""#, "null"] {
        assert!(is_id(id), "{id}");
    }
    for id in ["", " 1", "1 ", "true", "{}", "[]", "1,2", "\"", "nul", "\"a\nb\"", "+1"] {
        assert!(!is_id(id), "{id}");
    }
}
