//! Secrets that are known by how they begin.

use std::ops::Range;

/// How a kind of key begins, and how much must follow for it to be one.
struct Shape {
    prefix: &'static str,
    body: Body,
    bytes_min: usize,
}

#[derive(Clone, Copy)]
enum Body {
    /// Letters, digits, `-` and `_`.
    Word,
    /// The same and dots.
    Dotted,
    /// Letters and digits: names in programs that begin alike have an underscore.
    Plain,
    /// Capitals and digits.
    Capitals,
}

const fn shape(prefix: &'static str, body: Body, bytes_min: usize) -> Shape {
    Shape { prefix, body, bytes_min }
}

/// The first that fits counts.
const SHAPES: &[Shape] = &[
    shape("sk_live_", Body::Word, 8),
    shape("sk_test_", Body::Word, 8),
    shape("rk_live_", Body::Word, 8),
    shape("whsec_", Body::Plain, 16),
    shape("sk-", Body::Word, 8),
    shape("sk_", Body::Word, 8),
    shape("ghp_", Body::Word, 8),
    shape("gho_", Body::Word, 8),
    shape("ghu_", Body::Word, 8),
    shape("ghs_", Body::Word, 8),
    shape("ghr_", Body::Word, 8),
    shape("github_pat_", Body::Word, 8),
    shape("glpat-", Body::Word, 8),
    shape("gldt-", Body::Word, 16),
    shape("glrt-", Body::Word, 16),
    shape("xoxa-", Body::Word, 8),
    shape("xoxb-", Body::Word, 8),
    shape("xoxe-", Body::Word, 8),
    shape("xoxp-", Body::Word, 8),
    shape("xoxr-", Body::Word, 8),
    shape("xoxs-", Body::Word, 8),
    shape("xapp-", Body::Word, 8),
    shape("hf_", Body::Plain, 20),
    shape("npm_", Body::Plain, 20),
    shape("gsk_", Body::Plain, 20),
    shape("r8_", Body::Plain, 20),
    shape("xai-", Body::Plain, 20),
    shape("pplx-", Body::Plain, 20),
    shape("lin_api_", Body::Plain, 16),
    shape("dop_v1_", Body::Plain, 16),
    shape("shpat_", Body::Plain, 16),
    shape("pypi-", Body::Word, 40),
    shape("GOCSPX-", Body::Word, 16),
    shape("ya29.", Body::Dotted, 16),
    shape("SG.", Body::Dotted, 32),
    shape("AKIA", Body::Capitals, 16),
    shape("ASIA", Body::Capitals, 16),
    shape("AIza", Body::Word, 30),
];

/// A base64url part of a JWT is never shorter; the word `eyJ` alone is no secret.
const JWT_PART_MIN: usize = 10;
/// Of `sk-`, which also begins names of things: so many, or fewer with a digit among them.
const SK_PLAIN_MIN: usize = 20;

/// If a key starts at `at`: what of the word to hide. The caller knows that no word reaches into it.
pub(super) fn key_at(word: &str, at: usize) -> Option<Range<usize>> {
    let rest = &word[at..];
    // Nearly every place in a text is told apart by its first byte.
    if !matches!(
        rest.as_bytes().first()?,
        b's' | b'r'
            | b'w'
            | b'g'
            | b'x'
            | b'h'
            | b'n'
            | b'p'
            | b'l'
            | b'd'
            | b'G'
            | b'y'
            | b'S'
            | b'A'
            | b'e'
    ) {
        return None;
    }
    if rest.starts_with("eyJ") {
        return jwt(rest).map(|len| at..at + len);
    }
    let fits = |it: &Shape| {
        let body = rest.strip_prefix(it.prefix)?;
        let len = it.body.run(body);
        let generic = it.prefix == "sk-" || it.prefix == "sk_";
        let likely =
            !generic || SK_PLAIN_MIN <= len || body[..len].contains(|c: char| c.is_ascii_digit());
        (it.bytes_min <= len && likely).then(|| at + it.prefix.len()..at + it.prefix.len() + len)
    };
    SHAPES.iter().find_map(fits)
}

/// The length of a header, a payload and whatever follows them, each behind a dot.
fn jwt(rest: &str) -> Option<usize> {
    let first = Body::Word.run(rest);
    let second = rest[first..].strip_prefix('.').map(|it| Body::Word.run(it))?;
    (JWT_PART_MIN <= first && JWT_PART_MIN <= second).then(|| Body::Dotted.run(rest))
}

/// How far a key that reaches to the end of what was looked at may go on.
pub(super) fn run(text: &str) -> usize {
    Body::Dotted.run(text)
}

impl Body {
    fn run(self, text: &str) -> usize {
        let belongs = |c: char| match self {
            Body::Word => is_key_char(c),
            Body::Dotted => is_key_char(c) || c == '.',
            Body::Plain => c.is_ascii_alphanumeric(),
            Body::Capitals => c.is_ascii_uppercase() || c.is_ascii_digit(),
        };
        let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
        // The dot that ends a sentence.
        text[..end].trim_end_matches('.').len()
    }
}

pub(super) fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
