//! JSON texts for the property tests: valid ones in every spelling, and broken ones.

use proptest::{collection::vec, prelude::*, sample::select};

/// One JSON value, with odd spacing, escapes, repeated keys and numbers that no machine type holds.
pub(crate) fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec((space(), inner.clone(), space()), 0..4).prop_map(|items| {
                let items: Vec<_> =
                    items.into_iter().map(|(a, it, b)| [a, &it, b].concat()).collect();
                format!("[{}]", items.join(","))
            }),
            vec((key(), inner), 0..4).prop_flat_map(object),
        ]
    })
}

/// A value that is no container, or an empty one.
pub(crate) fn scalar() -> impl Strategy<Value = String> {
    let words = ["null", "true", "false", "{}", "[]", "[ ]"];
    prop_oneof![select(words.to_vec()).prop_map(str::to_owned), number(), string()]
}

/// A number, many of which no machine type holds.
pub(crate) fn number() -> impl Strategy<Value = String> {
    let whole = ["0", "-0", "7", "-12", "9007199254740993", "18446744073709551616"];
    let fraction = ["", "", ".0", ".50", ".123456789012345678901234567890"];
    let exponent = ["", "", "e0", "E+05", "e-7", "e999"];
    [whole.to_vec(), fraction.to_vec(), exponent.to_vec()]
        .map(select)
        .prop_map(|parts| parts.concat())
}

/// A JSON string in any spelling.
pub(crate) fn string() -> impl Strategy<Value = String> {
    let plain = ["a", "b", " ", "é", "🦀", "long enough", ":", "{"];
    let escapes = ["\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\u0000", "\\ud83e\\udd80", "x"];
    let quoted = |parts: Vec<&str>| format!("\"{}\"", parts.concat());
    prop_oneof![
        2 => vec(select(plain.to_vec()), 0..5).prop_map(quoted),
        1 => vec(select([plain, escapes].concat()), 0..5).prop_map(quoted),
    ]
}

/// A key, often one that the hub routes on, now and then spelled with an escape.
fn key() -> impl Strategy<Value = String> {
    let names = [
        "id",
        "method",
        "params",
        "result",
        "error",
        "sessionId",
        "pool",
        "agentId",
        "requestId",
        "update",
        "_meta",
        "sessionUpdate",
        "jackfield",
        "x",
        "",
    ];
    prop_oneof![
        4 => select(names.to_vec()).prop_map(|name| format!("\"{name}\"")),
        1 => select(names.to_vec()).prop_map(spelled_with_an_escape),
        1 => string(),
    ]
}

fn spelled_with_an_escape(name: &str) -> String {
    match name.chars().next() {
        Some(first) => format!("\"\\u{:04X}{}\"", u32::from(first), &name[first.len_utf8()..]),
        None => "\"\"".to_owned(),
    }
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just("\t ")]
}

/// The members as an object, in the order given, with space where the grammar allows it.
pub(crate) fn object(members: Vec<(String, String)>) -> impl Strategy<Value = String> {
    vec([space(), space(), space(), space()], members.len()).prop_map(move |spaces| {
        let members = members
            .iter()
            .zip(&spaces)
            .map(|((key, value), [a, b, c, d])| [*a, key, b, ":", c, value, d].concat());
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

/// A message: the members of an envelope, some of them missing, in any order, with strangers
/// between them. Not every one obeys the rules.
pub(crate) fn message() -> impl Strategy<Value = String> {
    let id = || prop_oneof![number(), string(), Just("null".to_owned())];
    let params = prop_oneof![6 => body(), 1 => value()];
    let call = some_of(vec![
        member("id", id()),
        member("method", string()),
        member("params", params),
        outer(),
        stranger(),
    ]);
    let answer = some_of(vec![
        member("id", id()),
        member("result", prop_oneof![body(), value()]),
        member("error", prop_oneof![2 => Just("null".to_owned()), 1 => value()]),
        outer(),
        stranger(),
    ]);
    prop_oneof![2 => call, 1 => answer]
}

/// What clients of a bus put beside params.
fn outer() -> BoxedStrategy<Member> {
    let of = |key| member(key, prop_oneof![4 => string(), 1 => value()]);
    prop_oneof![of("sessionId"), of("pool"), of("agentId"), Just(None)].boxed()
}

/// What params, or a result, may look like.
fn body() -> impl Strategy<Value = String> {
    let update = some_of(vec![member("sessionUpdate", string()), stranger()]);
    let meta = some_of(vec![member("jackfield", value()), stranger()]);
    some_of(vec![
        member("sessionId", prop_oneof![4 => string(), 1 => value()]),
        member("requestId", scalar()),
        member("update", prop_oneof![4 => update, 1 => value()]),
        member("_meta", prop_oneof![4 => meta, 1 => value()]),
        stranger(),
    ])
}

/// Key and value, or nothing.
type Member = Option<(String, String)>;

/// A member that is there three times out of four.
fn member(
    key: &'static str,
    value: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<Member> {
    let key = prop_oneof![
        5 => Just(format!("\"{key}\"")),
        1 => Just(spelled_with_an_escape(key)),
    ];
    prop::option::weighted(0.75, (key, value)).boxed()
}

fn stranger() -> BoxedStrategy<Member> {
    prop::option::of((key(), value())).boxed()
}

/// An object of those members that are there, in any order.
fn some_of(members: Vec<BoxedStrategy<Member>>) -> BoxedStrategy<String> {
    let present = members.prop_map(|members| members.into_iter().flatten().collect::<Vec<_>>());
    present.prop_shuffle().prop_flat_map(object).boxed()
}

/// A text with a few bytes changed, dropped or added; still UTF-8, rarely still JSON.
pub(crate) fn mutated(text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let bits = ["\"", "\\", "{", "}", "[", "]", ",", ":", "0", ".", "e", "-", "u", "\0", "\n", "é"];
    let change = (any::<prop::sample::Index>(), 0..3u8, select(bits.to_vec()));
    (text, vec(change, 1..4)).prop_map(|(text, changes)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, what, bit) in changes {
            let at = at.index(chars.len() + 1);
            if what < 2 && at < chars.len() {
                chars.remove(at);
            }
            if 0 < what {
                chars.insert(at.min(chars.len()), bit.chars().next().unwrap());
            }
        }
        chars.into_iter().collect()
    })
}
