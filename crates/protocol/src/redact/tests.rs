//! What is a secret and what is not, whole and in pieces.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// A text, and what may not be left of it.
type Planted = (String, String);

fn with(lead: &'static str, body: &'static str) -> BoxedStrategy<Planted> {
    proptest::string::string_regex(body)
        .unwrap()
        .prop_map(move |secret| (format!("{lead}{secret}"), secret))
        .boxed()
}

/// One of each kind that is promised to be found.
fn secrets() -> impl Strategy<Value = Planted> {
    let digits = "[A-Za-z0-9]{6}[0-9][A-Za-z0-9_]{12,40}";
    let long = "[A-Za-z0-9]{30,60}";
    let block =
        proptest::string::string_regex("([A-Za-z0-9+/]{30,64}\n){1,4}").unwrap().prop_map(|body| {
            let text =
                format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----");
            (text, body)
        });
    let jwt = proptest::string::string_regex(
        "eyJ[A-Za-z0-9]{20,40}\\.eyJ[A-Za-z0-9]{20,60}\\.[A-Za-z0-9_]{30,43}",
    );
    let phrase = proptest::string::string_regex("[a-z]{4,9} [a-z]{4,9} [a-z0-9]{4,9}").unwrap();
    prop_oneof![
        with("sk-", digits),
        with("sk-ant-api03-", digits),
        with("sk-proj-", digits),
        with("ghp_", long),
        with("github_pat_", digits),
        with("glpat-", digits),
        with("xoxb-", digits),
        with("hf_", long),
        with("gsk_", long),
        with("AKIA", "[A-Z0-9]{16}"),
        with("AIza", "[A-Za-z0-9_]{35}"),
        with("ya29.", digits),
        with("OPENAI_API_KEY=", digits),
        with("export AWS_SECRET_ACCESS_KEY=", "[A-Za-z0-9/+]{40}"),
        with("DB_PASSWORD: ", digits),
        with("GH_TOKEN = ", digits),
        with("password=", digits),
        with("\\\"apiKey\\\":\\\"", digits),
        with("\"token\": \"", digits),
        with("--api-key ", digits),
        with("?access_token=", digits),
        with("Authorization: Bearer ", digits),
        with("authorization: Basic ", "[A-Za-z0-9+/]{20,40}"),
        with("Authorization: ", digits),
        with("Bearer ", digits),
        with("x-api-key: ", digits),
        with("postgres://someone:", "[A-Za-z0-9!%]{8,20}")
            .prop_map(|(text, secret)| { (format!("{text}@db.example/x"), secret) }),
        phrase.prop_map(|it| (format!("SMTP_PASSWORD=\"{it}\""), it)),
        jwt.unwrap().prop_map(|it| (it.clone(), it)),
        block,
    ]
}

/// What stands beside it: words, code, hashes, ids, images.
fn ordinary() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-zA-Z]{1,12}",
        "[0-9a-f]{40}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",
        Just(
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI".into()
        ),
        Just("let token = parser.next_token()?;".into()),
        Just("password: String,".into()),
        Just("the bearer of bad news".into()),
        Just("max_tokens: 4096, \"inputTokens\":12345".into()),
        Just("API_KEY=$OPENAI_API_KEY".into()),
        Just("token::Kind == TOKEN::X".into()),
        Just("https://example.org/a?b=c#d git@github.com:a/b".into()),
        Just("task-123456789 hf_hub_download npm_config_registry sk-short".into()),
        Just("-----BEGIN CERTIFICATE----- und sö weiter 漢字".into()),
        Just("fn key(&self) -> Key { key: 1 }".into()),
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

fn in_pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut % (text.len() + 1)))
        .chain([0, text.len()])
        .collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

fn redacted(pieces: &[String]) -> Vec<String> {
    let mut redactor = PieceRedactor::default();
    let mut shown: Vec<String> = pieces.iter().flat_map(|it| redactor.push(it)).collect();
    shown.extend(redactor.finish());
    shown
}

proptest! {
    #[test]
    fn no_secret_survives_wherever_it_stands_and_however_it_is_cut(
        before in ordinary(),
        (planted, secret) in secrets(),
        after in ordinary(),
        cuts in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        let whole = format!("{before} {planted}\n{after}");
        let shown = text(&whole);
        prop_assert!(!shown.contains(&secret), "{shown}");
        prop_assert!(shown.starts_with(&before) && shown.ends_with(&after), "{shown}");
        let pieces = in_pieces(&whole, &cuts);
        let out = redacted(&pieces);
        prop_assert_eq!(out.len(), pieces.len());
        prop_assert_eq!(out.concat(), shown);
    }

    #[test]
    fn ordinary_text_stays_as_it_is(text in ordinary()) {
        prop_assert_eq!(super::text(&text), &*text);
    }

    #[test]
    fn anything_can_be_read_and_cutting_never_matters(
        text in "(\\PC|sk-|=|:|\"|KEY|TOKEN|Bearer |://|@|\\\\|\n| |-----BEGIN|PRIVATE|KEY-----){0,60}",
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
    ) {
        let pieces = in_pieces(&text, &cuts);
        let out = redacted(&pieces);
        prop_assert_eq!(out.len(), pieces.len());
        prop_assert_eq!(out.concat(), super::text(&text));
    }
}

fn redactor() -> SecretRedactor {
    SecretRedactor::new(&[
        ("OPENAI_API_KEY".into(), "abcdef-123".into()),
        ("my_token".into(), "abcdef-123-longer".into()),
        ("CERT_KEY".into(), "-----BEGIN-----\nQUJDREVG\n".into()),
        ("KEYBOARD".into(), "us".into()),
        ("HOME".into(), "/home/someone".into()),
    ])
}

#[test]
fn values_of_secret_variables_are_hidden_and_others_are_not() {
    let text = redactor().redact("key=abcdef-123 t=abcdef-123-longer QUJDREVG us /home/someone");
    assert_eq!(text, "key=*** t=*** *** us /home/someone");
}

#[test]
fn what_is_hidden_keeps_its_name_and_its_surroundings() {
    let cases = [
        (
            "Authorization: Bearer eyJ.x.y, \"sk-proj-12345678\"",
            "Authorization: Bearer ***, \"sk-***\"",
        ),
        ("ghp_abcdefgh1234 sk-short bearer", "ghp_*** sk-short bearer"),
        (
            "curl -H 'Authorization: Bearer abc123' https://x",
            "curl -H 'Authorization: Bearer ***' https://x",
        ),
        ("OPENAI_API_KEY=abcdef MODE=plain", "OPENAI_API_KEY=*** MODE=plain"),
        ("MY_SECRET='two words' end", "MY_SECRET='***' end"),
        ("{\"apiKey\":\"a1b2c3d4e5\",\"n\":1}", "{\"apiKey\":\"***\",\"n\":1}"),
        ("mysql://root:hunter2@localhost/db", "mysql://root:***@localhost/db"),
        ("Cookie: a=b; c=d\nnext", "Cookie: ***\nnext"),
        ("key: AKIAABCDEFGHIJKLMNOP.", "key: AKIA***."),
        (
            "-----BEGIN PRIVATE KEY-----\nMII\nQ==\n-----END PRIVATE KEY-----\nrest",
            "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----\nrest",
        ),
        ("tool --api-key abc123def456 run", "tool --api-key *** run"),
        (
            "Authorization: Digest username=\"x\", response=\"y\"\nz",
            "Authorization: Digest ***\"x\", response=\"y\"\nz",
        ),
    ];
    for (text, shown) in cases {
        assert_eq!(super::text(text), shown);
    }
}

#[test]
fn one_endless_word_is_read_in_linear_time_and_a_key_in_it_is_hidden() {
    let blob = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0".repeat(30_000);
    assert!(1 << 20 <= blob.len());
    let begin = std::time::Duration::from_secs(20);
    // A quadratic reader would take minutes; this takes a fraction of a second.
    assert!(started(|| assert_eq!(text(&blob), blob)) < begin);
    let pieces: Vec<String> =
        blob.as_bytes().chunks(7).map(|it| String::from_utf8_lossy(it).into_owned()).collect();
    assert!(started(|| assert_eq!(redacted(&pieces).concat(), blob)) < begin);
    let key = format!("{blob} sk-{}1", "a".repeat(100_000));
    assert_eq!(text(&key), format!("{blob} sk-***"));
}

#[expect(clippy::disallowed_methods, reason = "a bound on time needs a clock")]
fn started(work: impl FnOnce()) -> std::time::Duration {
    let begin = std::time::Instant::now();
    work();
    begin.elapsed()
}

#[test]
fn who_cannot_wait_loses_the_word_and_not_the_secret() {
    let mut pieces = PieceRedactor::default();
    assert_eq!(pieces.push("key sk-"), Vec::<String>::new());
    assert_eq!(pieces.give_up(), ["key ***"]);
    assert_eq!(pieces.push("abcdef123456 end "), [" end "]);
}

#[test]
fn values_behind_telling_keys_are_hidden_in_json() {
    let mut value = json!({
        "apiKey": "short", "authorization": "x", "n": 7, "note": "use sk-abcdefgh1",
        "env": { "A": "1", "B": "two" },
        "mcpServers": [{ "env": [{ "name": "A", "value": "b" }],
                         "headers": [{ "name": "X-Api-Key", "value": "v" }, { "name": "Accept", "value": "text/html" }] }],
        "maxTokens": 5, "token": ["ok", "sk-abcdefgh1"],
    });
    json(&mut value);
    assert_eq!(
        value,
        json!({
            "apiKey": "***", "authorization": "***", "n": 7, "note": "use sk-***",
            "env": { "A": "***", "B": "***" },
            "mcpServers": [{ "env": [{ "name": "A", "value": "***" }],
                             "headers": [{ "name": "X-Api-Key", "value": "***" }, { "name": "Accept", "value": "text/html" }] }],
            "maxTokens": 5, "token": ["ok", "sk-***"],
        })
    );
    let mut value = json!({ "auth": "dXNlcjpmYWtlLXBhc3M=", "mode": { "auth": "required" } });
    json(&mut value);
    assert_eq!(value, json!({ "auth": "***", "mode": { "auth": "required" } }));
}

#[test]
fn passwords_in_arguments_are_hidden() {
    let shown =
        |args: &str| argv(&args.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
    assert_eq!(shown("x --api-key abc --token=a1b2c3d4e5 y"), "x --api-key *** --token=*** y");
    assert_eq!(shown("/bin/curl -s -u me:pass https://x"), "/bin/curl -s -u me:*** https://x");
    assert_eq!(shown("curl -ume:pass --user=a:pass"), "curl -ume:*** --user=a:***");
    assert_eq!(shown("sshpass -p pass ssh -p 22 x"), "sshpass -p *** ssh -p 22 x");
    assert_eq!(shown("docker run -u 1:1 -p 80:80 x"), "docker run -u 1:1 -p 80:80 x");
}

#[test]
fn a_hostile_word_is_read_in_linear_time() {
    let hostile = [
        "eyJ-".repeat(40_000),
        format!("{}(", "token:".repeat(40_000)),
        "a://b:c/d".repeat(20_000),
        "<token></token>~8Q~".repeat(8_000),
        "hvs.-SG.-1//0-s.".repeat(8_000),
    ];
    for word in hostile {
        // A quadratic reader would take minutes.
        let limit = std::time::Duration::from_secs(20);
        assert!(started(|| assert!(!text(&word).is_empty())) < limit, "{}", &word[..40]);
    }
}
