//! The keys of known services, by prefix.

/// The form of the keys of one service.
pub(super) struct KeyShape {
    pub(super) prefix: &'static str,
    pub(super) body: KeyAlphabet,
    pub(super) bytes_min: usize,
    pub(super) need: KeyRequirement,
}

/// The characters after the prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAlphabet {
    /// Letters, digits, `-` and `_`.
    Token,
    /// The same and dots.
    Dotted,
    /// Letters and digits: names in programs that begin alike have an underscore.
    Plain,
    /// Capitals and digits.
    Capitals,
    /// Lowercase letters and digits.
    Lower,
    Hex,
    /// Both alphabets of base64, with padding.
    Base64,
    /// The path of a URL.
    Path,
}

/// What must follow a short or common prefix besides a minimum length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyRequirement {
    Nothing,
    /// 20 bytes, or fewer with a digit among them.
    DigitIfShort,
    /// A digit.
    Digit,
    /// A digit, a capital and a small letter, in exactly `bytes_min` bytes.
    MixedAndExact,
}

const fn shape(prefix: &'static str, body: KeyAlphabet, bytes_min: usize) -> KeyShape {
    KeyShape { prefix, body, bytes_min, need: KeyRequirement::Nothing }
}

const fn picky(
    prefix: &'static str,
    body: KeyAlphabet,
    bytes_min: usize,
    need: KeyRequirement,
) -> KeyShape {
    KeyShape { prefix, body, bytes_min, need }
}

use KeyAlphabet::{Base64, Capitals, Dotted, Hex, Lower, Path, Plain, Token};

/// In the order of their first bytes. Of those that begin alike the first that fits counts.
pub(super) const SHAPES: &[KeyShape] = &[
    shape("1//0", Token, 30),                           // Google refresh token
    shape("AGE-SECRET-KEY-", Token, 16),                // age
    shape("AIza", Token, 30),                           // Google API key
    shape("AKCp", Plain, 40),                           // Artifactory
    shape("AKIA", Capitals, 16),                        // AWS
    shape("ASIA", Capitals, 16),                        // AWS, temporary
    shape("ABIA", Capitals, 16),                        // AWS, bearer
    shape("ACCA", Capitals, 16),                        // AWS, context
    shape("AQoDYXdz", Base64, 60),                      // AWS session token
    shape("ATATT", Base64, 40),                         // Atlassian
    shape("ATCTT", Base64, 40),                         // Atlassian
    shape("ATBB", Plain, 24),                           // Bitbucket
    shape("BBDC-", Base64, 32),                         // Bitbucket Data Center
    shape("CCIPAT_", Token, 30),                        // CircleCI
    shape("CCIPRJ_", Token, 30),                        // CircleCI
    shape("CFPAT-", Token, 30),                         // Contentful
    shape("CLOJARS_", Hex, 40),                         // Clojars
    picky("EAA", Token, 56, KeyRequirement::Digit),     // Square, Facebook
    shape("EZAK", Plain, 50),                           // EasyPost
    shape("FLWSECK", Token, 20),                        // Flutterwave
    shape("FwoGZXIvYXdz", Base64, 60),                  // AWS session token
    shape("GOCSPX-", Token, 16),                        // Google OAuth
    shape("GR1348941", Token, 16),                      // GitLab runner registration
    shape("HRKU-", Token, 30),                          // Heroku
    shape("IQoJb3JpZ2lu", Base64, 60),                  // AWS session token
    shape("KGAT_", Token, 20),                          // Kaggle
    shape("LS0tLS1CRUdJTiBSU0EgUFJJVkFUR", Base64, 20), // RSA key in base64
    shape("LS0tLS1CRUdJTiBQUklWQVRF", Base64, 20),      // private key in base64
    shape("LS0tLS1CRUdJTiBFQyBQUklWQVRF", Base64, 20),  // EC key in base64
    shape("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFUR", Base64, 20), // encrypted key in base64
    shape("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVE", Base64, 20), // OpenSSH key in base64
    shape("LS0tLS1CRUdJTiBQR1AgUFJJVkFUR", Base64, 20), // PGP key in base64
    shape("NRAK-", Capitals, 20),                       // New Relic
    shape("NRAA-", Token, 20),                          // New Relic
    shape("NRII-", Token, 20),                          // New Relic
    shape("NRIQ-", Token, 20),                          // New Relic
    shape("NRJS-", Token, 16),                          // New Relic
    shape("NRRA-", Token, 20),                          // New Relic
    shape("PMAK-", Token, 30),                          // Postman
    shape("SG.", Dotted, 32),                           // SendGrid
    shape("SK", Hex, 32),                               // Twilio
    shape("aio_", Plain, 20),                           // Adafruit
    shape("apify_api_", Plain, 20),                     // Apify
    shape("atlasv1.", Token, 40),                       // Terraform Cloud, behind its id
    shape("bkua_", Hex, 32),                            // Buildkite
    shape("cal_live_", Plain, 16),                      // Cal.com
    shape("cfat_", Plain, 30),                          // Cloudflare
    shape("cfut_", Plain, 30),                          // Cloudflare
    picky("cio", Plain, 32, KeyRequirement::MixedAndExact), // crates.io
    shape("csk-", Plain, 30),                           // Cerebras
    shape("dapi", Hex, 32),                             // Databricks
    shape("dckr_oat_", Token, 20),                      // Docker
    shape("dckr_pat_", Token, 20),                      // Docker
    shape("discord.com/api/webhooks/", Path, 30),
    shape("discordapp.com/api/webhooks/", Path, 30),
    shape("dkea", Hex, 32),         // Databricks
    shape("doo_v1_", Plain, 16),    // DigitalOcean
    shape("dop_v1_", Plain, 16),    // DigitalOcean
    shape("dor_v1_", Plain, 16),    // DigitalOcean
    shape("dp.audit.", Token, 30),  // Doppler
    shape("dp.ct.", Token, 30),     // Doppler
    shape("dp.pt.", Token, 30),     // Doppler
    shape("dp.sa.", Token, 30),     // Doppler
    shape("dp.scim.", Token, 30),   // Doppler
    shape("dp.st.", Dotted, 30),    // Doppler
    shape("dt0c01.", Dotted, 40),   // Dynatrace
    shape("eyJhIjoi", Base64, 60),  // Cloudflare tunnel
    shape("eyJrIjoi", Base64, 40),  // Grafana, old
    shape("figd_", Token, 30),      // Figma
    shape("fio-u-", Token, 40),     // Frame.io
    shape("fm1a_", Base64, 40),     // Fly.io
    shape("fm1r_", Base64, 40),     // Fly.io
    shape("fm2_", Base64, 40),      // Fly.io
    shape("fo1_", Token, 30),       // typos: ignore
    shape("fw_", Plain, 20),        // Fireworks
    shape("gho_", Token, 8),        // GitHub
    shape("ghp_", Token, 8),        // GitHub
    shape("ghr_", Token, 8),        // GitHub
    shape("ghs_", Token, 8),        // GitHub
    shape("ghu_", Token, 8),        // GitHub
    shape("github_pat_", Token, 8), // GitHub
    shape("glagent-", Token, 16),   // GitLab
    shape("glc_", Base64, 32),      // Grafana Cloud
    shape("glcbt-", Token, 16),     // GitLab
    shape("gldt-", Token, 16),      // GitLab
    shape("glffct-", Token, 16),    // GitLab
    shape("glft-", Token, 16),      // GitLab
    shape("glimt-", Token, 16),     // GitLab
    shape("gloas-", Token, 16),     // GitLab
    shape("glpat-", Dotted, 8),     // GitLab
    shape("glptt-", Token, 16),     // GitLab
    shape("glrt-", Dotted, 16),     // GitLab
    shape("glrtr-", Token, 16),     // GitLab
    shape("glsa_", Token, 32),      // Grafana
    shape("glsoat-", Token, 16),    // GitLab
    shape("glwt-", Token, 16),      // GitLab
    shape("gsk_", Plain, 20),       // Groq
    shape("hf_", Plain, 20),        // Hugging Face
    shape("hooks.slack.com/services/", Path, 20),
    shape("hooks.slack.com/triggers/", Path, 20),
    shape("hooks.slack.com/workflows/", Path, 20),
    shape("hvb.", Token, 20),                              // HashiCorp Vault
    shape("hvr.", Token, 20),                              // HashiCorp Vault
    shape("hvs.", Token, 20),                              // HashiCorp Vault
    shape("jackfield.bearer.", Hex, 16),                   // Jackfield, as a WebSocket names it
    shape("jina_", Plain, 30),                             // Jina
    shape("key-", Hex, 32),                                // Mailgun
    shape("lin_api_", Plain, 16),                          // Linear
    shape("lin_oauth_", Plain, 16),                        // Linear
    shape("ls__", Hex, 32),                                // LangSmith, old
    shape("lsv2_pt_", Token, 30),                          // LangSmith
    shape("lsv2_sk_", Token, 30),                          // LangSmith
    shape("mfa.", Token, 60),                              // Discord
    shape("napi_", Plain, 30),                             // Neon
    shape("nfc_", Plain, 30),                              // Netlify
    shape("nfp_", Plain, 30),                              // Netlify
    shape("npm_", Plain, 20),                              // npm
    shape("ntn_", Plain, 30),                              // Notion
    shape("nvapi-", Token, 30),                            // NVIDIA
    shape("ops_eyJ", Base64, 60),                          // 1Password
    picky("oy2", Lower, 43, KeyRequirement::Digit),        // NuGet
    shape("pat-eu1-", Token, 30),                          // HubSpot
    shape("pat-na1-", Token, 30),                          // HubSpot
    shape("phx_", Plain, 30),                              // PostHog
    shape("pnu_", Plain, 30),                              // Prefect
    shape("pplx-", Plain, 20),                             // Perplexity
    shape("pscale_oauth_", Token, 30),                     // PlanetScale
    shape("pscale_pw_", Token, 30),                        // PlanetScale
    shape("pscale_tkn_", Token, 30),                       // PlanetScale
    shape("pul-", Hex, 32),                                // Pulumi
    shape("pypi-", Token, 40),                             // PyPI
    shape("r8_", Plain, 20),                               // Replicate
    shape("rdme_", Plain, 40),                             // ReadMe
    shape("rk_live_", Token, 8),                           // Stripe
    shape("rk_test_", Token, 8),                           // Stripe
    shape("rnd_", Plain, 24),                              // Render
    shape("rubygems_", Hex, 32),                           // RubyGems
    picky("s.", Plain, 24, KeyRequirement::MixedAndExact), // HashiCorp Vault, old
    shape("sb_secret_", Token, 16),                        // Supabase
    shape("sbp_", Plain, 30),                              // Supabase
    shape("secret_", Plain, 40),                           // Notion, old
    shape("sgp_", Token, 32),                              // Sourcegraph
    shape("sha256~", Token, 30),                           // OpenShift
    shape("shpat_", Plain, 16),                            // Shopify
    shape("shpca_", Plain, 16),                            // Shopify
    shape("shppa_", Plain, 16),                            // Shopify
    shape("shpss_", Plain, 16),                            // Shopify
    shape("shptka_", Plain, 16),                           // Shopify
    shape("sk_live_", Token, 8),                           // Stripe
    shape("sk_test_", Token, 8),                           // Stripe
    picky("sk-", Token, 8, KeyRequirement::DigitIfShort),  // OpenAI, Anthropic and many others
    picky("sk_", Token, 8, KeyRequirement::DigitIfShort),
    shape("sl.", Token, 60),                            // Dropbox
    shape("sntrya_", Base64, 30),                       // Sentry
    shape("sntrys_", Base64, 30),                       // Sentry
    shape("sntryu_", Base64, 30),                       // Sentry
    shape("sq0atp-", Token, 20),                        // Square
    shape("sq0csp-", Token, 20),                        // Square
    shape("tfp_", Token, 30),                           // Typeform
    shape("tgp_v1_", Token, 30),                        // Together
    shape("tskey-", Token, 16),                         // Tailscale
    shape("tvly-", Token, 20),                          // Tavily
    shape("v1.0-", Token, 100),                         // Cloudflare origin CA
    shape("v2.local.", Dotted, 40),                     // PASETO
    shape("v4.local.", Dotted, 40),                     // PASETO
    shape("vca_", Plain, 24),                           // Vercel
    shape("vci_", Plain, 24),                           // Vercel
    shape("vck_", Plain, 24),                           // Vercel
    shape("vcp_", Plain, 24),                           // Vercel
    shape("wandb_v1_", Token, 30),                      // Weights & Biases
    picky("whsec_", Base64, 16, KeyRequirement::Digit), // Stripe, Svix
    shape("xai-", Plain, 20),                           // xAI
    shape("xapp-", Token, 8),                           // Slack
    shape("xkeysib-", Token, 40),                       // Brevo
    shape("xoxa-", Token, 8),                           // Slack
    shape("xoxb-", Token, 8),                           // Slack
    shape("xoxc-", Token, 8),                           // Slack
    shape("xoxd-", Token, 8),                           // Slack
    shape("xoxe-", Token, 8),                           // Slack
    shape("xoxe.", Dotted, 16),                         // Slack
    shape("xoxp-", Token, 8),                           // Slack
    shape("xoxr-", Token, 8),                           // Slack
    shape("xoxs-", Token, 8),                           // Slack
    shape("xwfp-", Token, 16),                          // Slack
    shape("y0_", Token, 40),                            // Yandex
    shape("ya29.", Dotted, 16),                         // Google
];

/// Where the shapes of each first byte stand in the table.
const RANGES: [(u8, u8); 128] = ranges();

const fn ranges() -> [(u8, u8); 128] {
    assert!(SHAPES.len() < 256);
    let mut ranges = [(0, 0); 128];
    let mut at = 0;
    while at < SHAPES.len() {
        let first = SHAPES[at].prefix.as_bytes()[0] as usize;
        let (begin, end) = ranges[first];
        #[expect(clippy::cast_possible_truncation, reason = "the table is shorter, see above")]
        let here = at as u8;
        // All shapes of a byte stand together.
        assert!(begin == end || end == here);
        ranges[first] = (if begin == end { here } else { begin }, here + 1);
        at += 1;
    }
    ranges
}

/// The shapes that begin with this byte.
pub(super) fn shapes_of(first: u8) -> &'static [KeyShape] {
    let (begin, end) = RANGES.get(usize::from(first)).copied().unwrap_or_default();
    &SHAPES[usize::from(begin)..usize::from(end)]
}

impl KeyAlphabet {
    /// How much of the text belongs to the key, without the dot that ends a sentence.
    pub(super) fn run(self, text: &str) -> usize {
        let end = text.find(|c| !self.has(c)).unwrap_or(text.len());
        text[..end].trim_end_matches('.').len()
    }

    pub(super) fn has(self, c: char) -> bool {
        match self {
            Token => is_key_char(c),
            Dotted => is_key_char(c) || c == '.',
            Plain => c.is_ascii_alphanumeric(),
            Capitals => c.is_ascii_uppercase() || c.is_ascii_digit(),
            Lower => c.is_ascii_lowercase() || c.is_ascii_digit(),
            Hex => c.is_ascii_hexdigit(),
            Base64 => is_key_char(c) || matches!(c, '+' | '/' | '='),
            Path => is_key_char(c) || c == '/',
        }
    }
}

pub(super) fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
