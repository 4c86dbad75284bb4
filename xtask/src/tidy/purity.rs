//! State machines that live in a crate with I/O stay pure. The crates that are pure as a whole are held by their
//! dependencies and their `clippy.toml`.

/// Folders without I/O, clock, randomness, logging and hash order.
const PURE_FOLDERS: &[&str] = &["crates/bus/src/routing/", "crates/fleet/src/gateway/"];

const REFUSED_PATHS: &[&str] = &[
    "tokio",
    "tracing",
    "getrandom",
    "async_nats",
    "jackfield_agents",
    "jackfield_journal",
    "jackfield_transport",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
];

/// Complaints about one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    if !PURE_FOLDERS.iter().any(|it| path.starts_with(it)) {
        return Vec::new();
    }
    let code = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(number, line)| {
        let refused = REFUSED_PATHS.iter().filter(move |it| has_path(line, it));
        refused.map(move |it| format!("{path}:{number}: `{it}` in a pure module: pass it in"))
    })
    .collect()
}

/// Whether the line has this path as whole words.
fn has_path(line: &str, path: &str) -> bool {
    let is_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    line.match_indices(path).any(|(start, _)| {
        let end = start + path.len();
        !is_word(line[..start].chars().next_back()) && !is_word(line[end..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_and_clocks_are_refused_in_pure_folders_only() {
        let text = "//! x\n// tokio\nuse std::time::Instant;\nuse tokio::sync::mpsc;\n";
        let complaints = check("crates/bus/src/routing/a.rs", text);
        let expected = [
            "crates/bus/src/routing/a.rs:3: `Instant` in a pure module: pass it in",
            "crates/bus/src/routing/a.rs:4: `tokio` in a pure module: pass it in",
        ];
        assert_eq!(complaints, expected);
        assert_eq!(check("crates/bus/src/serve.rs", text), [""; 0]);
        assert_eq!(check("crates/fleet/src/gateway/a.rs", "struct HashMapping;"), [""; 0]);
    }
}
