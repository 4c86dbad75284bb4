//! What counts as a word of a name, and which single words are names by themselves.

/// The product's own nouns: the only types with a name of one word. The plural is accepted too.
pub(crate) const GLOSSARY: &[&str] = &[
    "Adapter",
    "Agent",
    "Archive",
    "Bus",
    "Catalog",
    "Client",
    "Connection",
    "Cursor",
    "Daemon",
    "Dialect",
    "Elicitation",
    "Envelope",
    "Event",
    "Frame",
    "Gateway",
    "Guard",
    "Host",
    "Hub",
    "Journal",
    "Lease",
    "Policy",
    "Pool",
    "Prompt",
    "Replay",
    "Rule",
    "Segment",
    "Session",
    "Stream",
    "Subscription",
    "Tenant",
    "Turn",
    "View",
    "Worker",
];

/// Function names of one word that every reader of Rust knows from the standard library.
pub(crate) const CONVENTIONAL_FUNCTIONS: &[&str] = &[
    "clear", "contains", "drain", "extend", "get", "insert", "iter", "keys", "len", "main", "new",
    "next", "pop", "push", "remove", "values",
];

/// The words of an identifier in lower case: `gateway_legs` and `GatewayLegs` have the same.
pub(crate) fn split_words(identifier: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = identifier.trim_start_matches("r#").chars().collect();
    for (at, it) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|it| chars[it]);
        let after = chars.get(at + 1);
        // `HTTPServer`: the last capital of a row belongs to the next word.
        let starts_word = it.is_uppercase()
            && before
                .is_some_and(|it| !it.is_uppercase() || after.is_some_and(|it| it.is_lowercase()));
        if (*it == '_' || starts_word) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if *it != '_' {
            word.extend(it.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

pub(crate) fn has_one_word(identifier: &str) -> bool {
    split_words(identifier).len() == 1
}

/// Whether a type may have this name of one word.
pub(crate) fn is_glossary_noun(name: &str) -> bool {
    GLOSSARY.iter().any(|noun| {
        let plural = noun.strip_suffix('y').map_or_else(
            || format!("{noun}s"),
            |stem| if *noun == "Gateway" { format!("{noun}s") } else { format!("{stem}ies") },
        );
        name == *noun || name == plural
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_capitals_and_underscores() {
        assert_eq!(split_words("HostConnection"), ["host", "connection"]);
        assert_eq!(split_words("HTTPServer"), ["http", "server"]);
        assert_eq!(split_words("gateway_legs"), ["gateway", "legs"]);
        assert_eq!(split_words("SWEEP_INTERVAL"), ["sweep", "interval"]);
        assert_eq!(split_words("Sha256"), ["sha256"]);
        assert_eq!(split_words("r#type"), ["type"]);
        assert!(has_one_word("Entry") && has_one_word("_tell") && !has_one_word("tell_client"));
    }

    #[test]
    fn glossary_has_nouns_in_singular_and_plural() {
        for name in ["Session", "Sessions", "Policies", "Gateways", "Hub"] {
            assert!(is_glossary_noun(name), "{name}");
        }
        assert!(!is_glossary_noun("Entry") && !is_glossary_noun("session"));
    }
}
