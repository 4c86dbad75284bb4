//! Tests of the host rules: a table, and properties for any text.

use super::*;
use proptest::prelude::*;

fn rules(allowed: &[&str], refused: &[&str]) -> HostRules {
    let rule = |it: &&str| HostRule { pattern: it.parse().unwrap(), private: false };
    HostRules {
        allowed: allowed.iter().map(rule).collect(),
        refused: refused.iter().map(|it| it.parse().unwrap()).collect(),
    }
}

fn decide(rules: &HostRules, target: &str) -> String {
    match rules.decide(&HostPort::parse(target, Some(443)).unwrap()) {
        RuleDecision::Allowed(rule) => format!("allowed by {}", rule.pattern),
        RuleDecision::Refused(pattern) => format!("refused by {pattern}"),
        RuleDecision::UnlistedName => "unlisted".to_owned(),
        RuleDecision::UnlistedAddress => "unlisted address".to_owned(),
    }
}

#[test]
fn destination_is_decided_by_name_and_port() {
    let rules = rules(
        &["api.example.com", "*.example.org", "dev.example.net:8443", "10.1.2.3", "[fd00::1]:80"],
        &["bad.example.org", "*.evil.example.org", "api.example.com:80", "10.9.9.9"],
    );
    for (target, expected) in [
        ("api.example.com", "allowed by api.example.com"),
        ("API.EXAMPLE.COM.:443", "allowed by api.example.com"),
        ("api.example.com:80", "refused by api.example.com:80"),
        ("api.example.com:22", "unlisted"),
        ("example.com", "unlisted"),
        ("x.api.example.com", "unlisted"),
        ("api.example.com.attacker.net", "unlisted"),
        ("a.example.org", "allowed by *.example.org"),
        ("a.b.example.org:80", "allowed by *.example.org"),
        ("example.org", "unlisted"),
        ("badexample.org", "unlisted"),
        ("bad.example.org", "refused by bad.example.org"),
        ("bad.example.org:9", "refused by bad.example.org"),
        ("x.evil.example.org", "refused by *.evil.example.org"),
        ("evil.example.org", "allowed by *.example.org"),
        ("dev.example.net:8443", "allowed by dev.example.net:8443"),
        ("dev.example.net", "unlisted"),
        ("10.1.2.3:80", "allowed by 10.1.2.3"),
        ("10.1.2.3:8080", "unlisted address"),
        ("[::ffff:10.1.2.3]", "allowed by 10.1.2.3"),
        ("[fd00::1]:80", "allowed by [fd00::1]:80"),
        ("[fd00::1]", "unlisted address"),
        ("10.9.9.9", "refused by 10.9.9.9"),
        ("1.1.1.1", "unlisted address"),
    ] {
        assert_eq!(decide(&rules, target), expected, "{target}");
    }
}

#[test]
fn address_of_a_name_is_public_or_permitted_by_a_rule() {
    let rules = rules(&["10.1.2.3:8080", "169.254.169.254"], &["10.6.6.6", "1.2.3.4"]);
    let decide = |address: &str, port, private| {
        rules.decide_address(address.parse().unwrap(), port, private)
    };
    let refused = |index: usize| AddressDecision::Refused(&rules.refused[index]);
    assert_eq!(decide("8.8.8.8", 443, false), AddressDecision::Allowed);
    assert_eq!(decide("1.2.3.4", 443, false), refused(1));
    let private = AddressDecision::NotPublic(AddressClass::Private);
    assert_eq!(decide("10.1.2.4", 443, false), private);
    assert_eq!(decide("10.1.2.4", 443, true), AddressDecision::Allowed);
    assert_eq!(decide("10.6.6.6", 443, true), refused(0));
    assert_eq!(decide("10.1.2.3", 443, false), private, "another port is named");
    assert_eq!(decide("10.1.2.3", 8080, false), AddressDecision::Allowed);
    assert_eq!(decide("::ffff:10.1.2.3", 8080, false), AddressDecision::Allowed);
    assert_eq!(decide("127.0.0.1", 443, true), AddressDecision::Allowed);
    let link_local = AddressDecision::NotPublic(AddressClass::LinkLocal);
    assert_eq!(decide("169.254.1.1", 443, true), link_local, "`private` does not cover it");
    assert_eq!(decide("169.254.169.254", 80, false), AddressDecision::Allowed);
}

#[test]
fn private_applies_if_any_matching_rule_has_it() {
    let mut rules = rules(&["*.example.com", "a.example.com"], &[]);
    rules.allowed[1].private = true;
    let target = HostPort::parse("a.example.com:443", None).unwrap();
    assert_eq!(rules.decide(&target), RuleDecision::Allowed(&rules.allowed[1]));
}

/// Text that is close to a host: parts of names, addresses and everything that parsers treat specially.
fn host_like_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("api"),
        Just("EXAMPLE"),
        Just("example"),
        Just("com"),
        Just("."),
        Just("."),
        Just(".."),
        Just("-"),
        Just(":"),
        Just("443"),
        Just("80"),
        Just("@"),
        Just("%2e"),
        Just("%"),
        Just("["),
        Just("]"),
        Just("::ffff:"),
        Just("127"),
        Just("0x7f"),
        Just("0177"),
        Just("1"),
        Just("。"),
        Just("ｅ"),
        Just("\u{ad}"),
        Just("#"),
        Just("?"),
        Just("/"),
        Just("\\"),
        Just("\0"),
        Just("\r\n"),
    ];
    let parts = proptest::collection::vec(part, 0..12).prop_map(|it| it.concat());
    prop_oneof![parts, any::<String>()]
}

/// What the list `api.example.com, *.example.org` contains, written independently of the patterns.
fn is_listed(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let host = lower.strip_suffix(":443").or(lower.strip_suffix(":80")).unwrap_or(&lower);
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_plain = host.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
    is_plain && (host == "api.example.com" || (host.ends_with(".example.org") && host.len() > 12))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_is_allowed_only_if_the_list_contains_it(
        head in host_like_text(),
        tail in prop_oneof![
            Just(""), Just("api.example.com"), Just(".example.org"), Just(".example.org:443"),
            Just(".example.org."), Just("api.example.com:80"), Just("@api.example.com"),
        ],
    ) {
        let text = head + tail;
        let rules = rules(&["api.example.com", "*.example.org"], &[]);
        if let Ok(target) = HostPort::parse(&text, Some(443)) {
            let is_allowed = matches!(rules.decide(&target), RuleDecision::Allowed(_));
            prop_assert_eq!(is_allowed, is_listed(&text), "{:?} as {:?}", text, target);
            prop_assert_eq!(HostPort::parse(&target.to_string(), None), Ok(target));
        }
        let _never_panics = text.parse::<HostPattern>();
    }

    #[test]
    fn address_is_never_reached_by_a_name_in_any_spelling(bits: u32, text in host_like_text()) {
        let rules = rules(&["*.example.com"], &[]);
        for text in [format!("{bits}"), format!("{bits:#x}"), format!("{bits:#o}"), text] {
            if let Ok(target) = HostPort::parse(&text, Some(443))
                && let TargetHost::Address(_) = target.host
            {
                prop_assert_eq!(rules.decide(&target), RuleDecision::UnlistedAddress);
            }
        }
    }

    #[test]
    fn refused_host_is_never_allowed(name in "[a-c]{1,2}(\\.[a-c]{1,2}){0,3}", port in 79u16..82) {
        let target = HostPort::parse(&name, Some(port)).unwrap();
        let rules = rules(&["*.a", "*.b", "*.c", "a:79", "b.a:81"], &["*.a", "b", "c.c:80"]);
        let is_refused = name.contains('.') && name.rsplit('.').next() == Some("a")
 || name == "b" || (name == "c.c" && port == 80);
        let decision = rules.decide(&target);
        prop_assert_eq!(is_refused, matches!(decision, RuleDecision::Refused(_)));
    }
}
