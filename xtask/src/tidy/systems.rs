//! Only `crates/agents/src/os` and the system calls of sockets test for an operating system. Other
//! code asks for a property, such as `ORPHAN_PARENT`.

/// Where a test for an operating system is permitted.
const PERMITTED: &[&str] =
    &["crates/agents/src/os/", "crates/sandbox/src/os/", "crates/transport/src/socket_system.rs"];

/// Crates that only tests use. They drive Linux itself: network namespaces, control groups, `/proc`.
const TEST_CRATES: &[&str] =
    &["crates/bench/", "crates/e2e/", "crates/fuzz-checks/", "crates/sim/", "crates/test-support/"];

/// What a test for an operating system contains.
const SYSTEM_TESTS: &[&str] = &[
    "target_os",
    "target_vendor",
    "target_family",
    "cfg(windows)",
    "os::linux",
    "os::macos",
    "os::darwin",
    "consts::OS ==",
    "consts::OS !=",
    "match std::env::consts::OS",
    "match env::consts::OS",
];

/// Complaints about one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let is_test = path.contains("/tests/")
        || path.ends_with("/tests.rs")
        || TEST_CRATES.iter().any(|it| path.starts_with(it));
    let is_permitted = PERMITTED.iter().any(|it| path.starts_with(it));
    if !path.starts_with("crates/") || is_test || is_permitted {
        return Vec::new();
    }
    let code = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(number, line)| {
        let found = SYSTEM_TESTS.iter().filter(|it| line.contains(**it));
        found.map(move |it| {
            format!(
                "{path}:{number}: `{it}` tests for an operating system: put the difference into \
                 crates/agents/src/os, and ask for a property"
            )
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_system_is_tested_in_its_own_folder_only() {
        let text = "//! target_os\n#[cfg(target_os = \"linux\")]\nmod a;\n// target_os\n\
                    use std::os::linux::net::SocketAddrExt;\nuse std::os::unix::net::UnixStream;\n\
                    let is_mac = std::env::consts::OS == \"macos\";\nlet os = std::env::consts::OS;\n";
        let complaints = check("crates/daemon/src/a.rs", text);
        let places: Vec<&str> =
            complaints.iter().filter_map(|it| it.split(" tests for").next()).collect();
        let expected = [
            "crates/daemon/src/a.rs:2: `target_os`",
            "crates/daemon/src/a.rs:5: `os::linux`",
            "crates/daemon/src/a.rs:7: `consts::OS ==`",
        ];
        assert_eq!(places, expected);
        for path in [
            "crates/agents/src/os/linux/mod.rs",
            "crates/transport/src/socket_system.rs",
            "crates/policy/tests/main.rs",
            "crates/web/src/http/tests.rs",
            "crates/e2e/src/procs.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(check(path, text), Vec::<String>::new(), "{path}");
        }
    }
}
