//! The text of a Seatbelt profile for a plan, in the language of `sandbox-exec`.
//!
//! Of several rules that match, the last one applies. A rule is for a path and not for a file, so files that
//! do not exist yet are protected, too. Directories cannot be replaced by private ones: a temporary
//! directory is hidden, and the process gets one of its own.

use crate::plan::{NetworkPlan, PathAccess, PathRule, SandboxPlan};
use std::{fmt::Write as _, path::Path};

/// What the text needs besides the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeatbeltLaunch<'a> {
    /// The port on the loopback interface at which the proxy is forwarded.
    pub(super) proxy_port: Option<u16>,
    /// The temporary directory of the process.
    pub(super) private_directory: &'a Path,
}

/// System services that programs need for names, certificates, preferences and logs. All others are refused,
/// among them those that start programs outside of the sandbox, and the keychain.
const SERVICES: &[&str] = &[
    "com.apple.FSEvents",
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.SystemConfiguration.configd",
    "com.apple.bsd.dirhelper",
    "com.apple.cfprefsd.agent",
    "com.apple.cfprefsd.daemon",
    "com.apple.diagnosticd",
    "com.apple.logd",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.trustd",
    "com.apple.trustd.agent",
];

/// The text for `sandbox-exec -p`.
pub(super) fn write_profile(plan: &SandboxPlan, launch: SeatbeltLaunch<'_>) -> String {
    let mut text = "(version 1)\n(allow default)\n".to_owned();
    add_line(&mut text, "(deny signal)\n(allow signal (target same-sandbox))");
    add_line(&mut text, "(deny process-info* (target others))");
    add_line(&mut text, "(deny appleevent-send)\n(deny job-creation)\n(deny mach-lookup)");
    for service in SERVICES {
        add_line(&mut text, &format!("(allow mach-lookup (global-name {}))", quote(service)));
    }
    add_paths(&mut text, plan);
    let private = quote_path(launch.private_directory);
    add_line(&mut text, &format!("(allow file-read* file-write* (subpath {private}))"));
    add_network(&mut text, plan, launch);
    text
}

fn add_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a text grows without errors");
}

fn add_paths(text: &mut String, plan: &SandboxPlan) {
    let mut rules: Vec<&PathRule> = plan.paths.iter().collect();
    rules.sort_by(|left, right| left.path.cmp(&right.path));
    for rule in rules {
        let path = quote_path(&rule.path);
        match rule.access {
            PathAccess::ReadOnly => {
                add_line(text, &format!("(allow file-read* (subpath {path}))"));
                add_line(text, &format!("(deny file-write* (subpath {path}))"));
            }
            PathAccess::Writable => {
                add_line(text, &format!("(allow file-read* file-write* (subpath {path}))"));
                // A protected file in it could be replaced by renaming the directory.
                add_line(text, &format!("(deny file-write-unlink (literal {path}))"));
            }
            PathAccess::Hidden | PathAccess::Temporary => {
                add_line(text, &format!("(deny file-read* file-write* (subpath {path}))"));
            }
        }
        if rule.path == Path::new("/") {
            add_line(text, "(allow file-write* (subpath \"/dev\"))");
        }
    }
    for path in &plan.unprotected {
        add_line(text, &format!("(deny file-write* (subpath {}))", quote_path(path)));
    }
    for path in passed_directories(plan) {
        add_line(text, &format!("(allow file-read-metadata (literal {}))", quote_path(path)));
    }
}

/// The hidden directories on the way to a visible path. Programs ask for their metadata.
fn passed_directories(plan: &SandboxPlan) -> Vec<&Path> {
    let is_hidden = |it: &PathRule| matches!(it.access, PathAccess::Hidden | PathAccess::Temporary);
    let visible = plan.paths.iter().filter(|it| !is_hidden(it));
    let above = visible.flat_map(|it| it.path.ancestors().skip(1));
    let mut passed: Vec<&Path> =
        above.filter(|it| plan.find_rule(it).is_some_and(is_hidden)).collect();
    passed.sort_unstable();
    passed.dedup();
    passed
}

fn add_network(text: &mut String, plan: &SandboxPlan, launch: SeatbeltLaunch<'_>) {
    if plan.network == NetworkPlan::All {
        return;
    }
    add_line(text, "(deny network*)");
    // Servers under test. Connections to other ports of the machine are refused.
    add_line(text, "(allow network-bind network-inbound (local ip \"localhost:*\"))");
    if let Some(port) = launch.proxy_port {
        add_line(text, &format!("(allow network-outbound (remote ip \"localhost:{port}\"))"));
    }
}

fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EnforcementLayer, ResourceLimits};

    fn plan(network: NetworkPlan) -> SandboxPlan {
        let rules = [
            ("/", PathAccess::ReadOnly),
            ("/Users", PathAccess::Hidden),
            ("/Users/ann/a \"b\"", PathAccess::Writable),
            ("/Users/ann/a \"b\"/.git", PathAccess::Writable),
            ("/Users/ann/a \"b\"/.git/hooks", PathAccess::ReadOnly),
            ("/private/tmp", PathAccess::Temporary),
        ];
        let rule = |(path, access): (&str, PathAccess)| PathRule { path: path.into(), access };
        SandboxPlan {
            profile: "workspace".into(),
            layer: EnforcementLayer::Seatbelt,
            paths: rules.map(rule).into(),
            links: Vec::new(),
            env: Vec::new(),
            network,
            proxies_loopback: false,
            limits: ResourceLimits::default(),
            unprotected: vec!["/Users/ann/a \"b\"/.envrc".into()],
        }
    }

    fn text(network: NetworkPlan, proxy_port: Option<u16>) -> String {
        let private_directory = Path::new("/private/var/folders/x");
        write_profile(&plan(network), SeatbeltLaunch { proxy_port, private_directory })
    }

    #[test]
    fn profile_orders_rules_from_short_to_long_paths() {
        let text = text(NetworkPlan::Proxy { socket: "/s".into() }, Some(4321));
        let services = |it: &&str| !it.contains("global-name");
        let lines: Vec<&str> = text.lines().filter(services).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
    (version 1)
    (allow default)
    (deny signal)
    (allow signal (target same-sandbox))
    (deny process-info* (target others))
    (deny appleevent-send)
    (deny job-creation)
    (deny mach-lookup)
    (allow file-read* (subpath "/"))
    (deny file-write* (subpath "/"))
    (allow file-write* (subpath "/dev"))
    (deny file-read* file-write* (subpath "/Users"))
    (allow file-read* file-write* (subpath "/Users/ann/a \"b\""))
    (deny file-write-unlink (literal "/Users/ann/a \"b\""))
    (allow file-read* file-write* (subpath "/Users/ann/a \"b\"/.git"))
    (deny file-write-unlink (literal "/Users/ann/a \"b\"/.git"))
    (allow file-read* (subpath "/Users/ann/a \"b\"/.git/hooks"))
    (deny file-write* (subpath "/Users/ann/a \"b\"/.git/hooks"))
    (deny file-read* file-write* (subpath "/private/tmp"))
    (deny file-write* (subpath "/Users/ann/a \"b\"/.envrc"))
    (allow file-read-metadata (literal "/Users"))
    (allow file-read-metadata (literal "/Users/ann"))
    (allow file-read* file-write* (subpath "/private/var/folders/x"))
    (deny network*)
    (allow network-bind network-inbound (local ip "localhost:*"))
    (allow network-outbound (remote ip "localhost:4321"))
    "#);
    }

    #[test]
    fn network_is_denied_unless_all_is_permitted() {
        assert!(!text(NetworkPlan::All, None).contains("network"));
        let none = text(NetworkPlan::None, None);
        assert!(none.contains("(deny network*)") && !none.contains("network-outbound"));
    }

    #[test]
    fn parentheses_are_balanced_and_services_that_start_programs_are_refused() {
        let text = text(NetworkPlan::None, None);
        assert_eq!(text.matches('(').count(), text.matches(')').count());
        for service in ["launchservicesd", "SecurityServer", "securityd", "pasteboard"] {
            assert!(!text.contains(service), "{service}");
        }
    }
}
