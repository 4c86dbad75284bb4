//! The keys of known services, by how they begin.

/// How a kind of key begins, and what must follow for it to be one.
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    pub(super) body: Body,
    pub(super) bytes_min: usize,
    pub(super) need: Need,
}

/// The characters that a key goes on with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// Letters, digits, `-` and `_`.
    Word,
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

/// What the body of a short or common prefix must have besides its length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// 20 bytes, or fewer with a digit among them.
    DigitIfShort,
    /// A digit.
    Digit,
    /// A digit, a capital and a small letter, in exactly `bytes_min` bytes.
    MixedAndExact,
}

const fn shape(prefix: &'static str, body: Body, bytes_min: usize) -> Shape {
    Shape { prefix, body, bytes_min, need: Need::Nothing }
}

const fn picky(prefix: &'static str, body: Body, bytes_min: usize, need: Need) -> Shape {
    Shape { prefix, body, bytes_min, need }
}

use Body::{Base64, Capitals, Dotted, Hex, Lower, Path, Plain, Word};

/// In the order of their first bytes. Of those that begin alike the first that fits counts.
pub(super) const SHAPES: &[Shape] = &[
    shape("1//0", Word, 30),                            // Google refresh token
    shape("AGE-SECRET-KEY-", Word, 16),                 // age
    shape("AIza", Word, 30),                            // Google API key
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
    shape("CCIPAT_", Word, 30),                         // CircleCI
    shape("CCIPRJ_", Word, 30),                         // CircleCI
    shape("CFPAT-", Word, 30),                          // Contentful
    shape("CLOJARS_", Hex, 40),                         // Clojars
    picky("EAA", Word, 56, Need::Digit),                // Square, Facebook
    shape("EZAK", Plain, 50),                           // EasyPost
    shape("FLWSECK", Word, 20),                         // Flutterwave
    shape("FwoGZXIvYXdz", Base64, 60),                  // AWS session token
    shape("GOCSPX-", Word, 16),                         // Google OAuth
    shape("GR1348941", Word, 16),                       // GitLab runner registration
    shape("HRKU-", Word, 30),                           // Heroku
    shape("IQoJb3JpZ2lu", Base64, 60),                  // AWS session token
    shape("KGAT_", Word, 20),                           // Kaggle
    shape("LS0tLS1CRUdJTiBSU0EgUFJJVkFUR", Base64, 20), // RSA key in base64
    shape("LS0tLS1CRUdJTiBQUklWQVRF", Base64, 20),      // private key in base64
    shape("LS0tLS1CRUdJTiBFQyBQUklWQVRF", Base64, 20),  // EC key in base64
    shape("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFUR", Base64, 20), // encrypted key in base64
    shape("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVE", Base64, 20), // OpenSSH key in base64
    shape("LS0tLS1CRUdJTiBQR1AgUFJJVkFUR", Base64, 20), // PGP key in base64
    shape("NRAK-", Capitals, 20),                       // New Relic
    shape("NRAA-", Word, 20),                           // New Relic
    shape("NRII-", Word, 20),                           // New Relic
    shape("NRIQ-", Word, 20),                           // New Relic
    shape("NRJS-", Word, 16),                           // New Relic
    shape("NRRA-", Word, 20),                           // New Relic
    shape("PMAK-", Word, 30),                           // Postman
    shape("SG.", Dotted, 32),                           // SendGrid
    shape("SK", Hex, 32),                               // Twilio
    shape("aio_", Plain, 20),                           // Adafruit
    shape("apify_api_", Plain, 20),                     // Apify
    shape("atlasv1.", Word, 40),                        // Terraform Cloud, behind its id
    shape("bkua_", Hex, 32),                            // Buildkite
    shape("cal_live_", Plain, 16),                      // Cal.com
    shape("cfat_", Plain, 30),                          // Cloudflare
    shape("cfut_", Plain, 30),                          // Cloudflare
    picky("cio", Plain, 32, Need::MixedAndExact),       // crates.io
    shape("csk-", Plain, 30),                           // Cerebras
    shape("dapi", Hex, 32),                             // Databricks
    shape("dckr_oat_", Word, 20),                       // Docker
    shape("dckr_pat_", Word, 20),                       // Docker
    shape("discord.com/api/webhooks/", Path, 30),
    shape("discordapp.com/api/webhooks/", Path, 30),
    shape("dkea", Hex, 32),        // Databricks
    shape("doo_v1_", Plain, 16),   // DigitalOcean
    shape("dop_v1_", Plain, 16),   // DigitalOcean
    shape("dor_v1_", Plain, 16),   // DigitalOcean
    shape("dp.audit.", Word, 30),  // Doppler
    shape("dp.ct.", Word, 30),     // Doppler
    shape("dp.pt.", Word, 30),     // Doppler
    shape("dp.sa.", Word, 30),     // Doppler
    shape("dp.scim.", Word, 30),   // Doppler
    shape("dp.st.", Dotted, 30),   // Doppler
    shape("dt0c01.", Dotted, 40),  // Dynatrace
    shape("eyJhIjoi", Base64, 60), // Cloudflare tunnel
    shape("eyJrIjoi", Base64, 40), // Grafana, old
    shape("figd_", Word, 30),      // Figma
    shape("fio-u-", Word, 40),     // Frame.io
    shape("fm1a_", Base64, 40),    // Fly.io
    shape("fm1r_", Base64, 40),    // Fly.io
    shape("fm2_", Base64, 40),     // Fly.io
    shape("fo1_", Word, 30),       // typos: ignore
    shape("fw_", Plain, 20),       // Fireworks
    shape("gho_", Word, 8),        // GitHub
    shape("ghp_", Word, 8),        // GitHub
    shape("ghr_", Word, 8),        // GitHub
    shape("ghs_", Word, 8),        // GitHub
    shape("ghu_", Word, 8),        // GitHub
    shape("github_pat_", Word, 8), // GitHub
    shape("glagent-", Word, 16),   // GitLab
    shape("glc_", Base64, 32),     // Grafana Cloud
    shape("glcbt-", Word, 16),     // GitLab
    shape("gldt-", Word, 16),      // GitLab
    shape("glffct-", Word, 16),    // GitLab
    shape("glft-", Word, 16),      // GitLab
    shape("glimt-", Word, 16),     // GitLab
    shape("gloas-", Word, 16),     // GitLab
    shape("glpat-", Dotted, 8),    // GitLab
    shape("glptt-", Word, 16),     // GitLab
    shape("glrt-", Dotted, 16),    // GitLab
    shape("glrtr-", Word, 16),     // GitLab
    shape("glsa_", Word, 32),      // Grafana
    shape("glsoat-", Word, 16),    // GitLab
    shape("glwt-", Word, 16),      // GitLab
    shape("gsk_", Plain, 20),      // Groq
    shape("hf_", Plain, 20),       // Hugging Face
    shape("hooks.slack.com/services/", Path, 20),
    shape("hooks.slack.com/triggers/", Path, 20),
    shape("hooks.slack.com/workflows/", Path, 20),
    shape("hvb.", Word, 20),                     // HashiCorp Vault
    shape("hvr.", Word, 20),                     // HashiCorp Vault
    shape("hvs.", Word, 20),                     // HashiCorp Vault
    shape("jackfield.bearer.", Hex, 16),         // Jackfield, as a WebSocket names it
    shape("jina_", Plain, 30),                   // Jina
    shape("key-", Hex, 32),                      // Mailgun
    shape("lin_api_", Plain, 16),                // Linear
    shape("lin_oauth_", Plain, 16),              // Linear
    shape("ls__", Hex, 32),                      // LangSmith, old
    shape("lsv2_pt_", Word, 30),                 // LangSmith
    shape("lsv2_sk_", Word, 30),                 // LangSmith
    shape("mfa.", Word, 60),                     // Discord
    shape("napi_", Plain, 30),                   // Neon
    shape("nfc_", Plain, 30),                    // Netlify
    shape("nfp_", Plain, 30),                    // Netlify
    shape("npm_", Plain, 20),                    // npm
    shape("ntn_", Plain, 30),                    // Notion
    shape("nvapi-", Word, 30),                   // NVIDIA
    shape("ops_eyJ", Base64, 60),                // 1Password
    picky("oy2", Lower, 43, Need::Digit),        // NuGet
    shape("pat-eu1-", Word, 30),                 // HubSpot
    shape("pat-na1-", Word, 30),                 // HubSpot
    shape("phx_", Plain, 30),                    // PostHog
    shape("pnu_", Plain, 30),                    // Prefect
    shape("pplx-", Plain, 20),                   // Perplexity
    shape("pscale_oauth_", Word, 30),            // PlanetScale
    shape("pscale_pw_", Word, 30),               // PlanetScale
    shape("pscale_tkn_", Word, 30),              // PlanetScale
    shape("pul-", Hex, 32),                      // Pulumi
    shape("pypi-", Word, 40),                    // PyPI
    shape("r8_", Plain, 20),                     // Replicate
    shape("rdme_", Plain, 40),                   // ReadMe
    shape("rk_live_", Word, 8),                  // Stripe
    shape("rk_test_", Word, 8),                  // Stripe
    shape("rnd_", Plain, 24),                    // Render
    shape("rubygems_", Hex, 32),                 // RubyGems
    picky("s.", Plain, 24, Need::MixedAndExact), // HashiCorp Vault, old
    shape("sb_secret_", Word, 16),               // Supabase
    shape("sbp_", Plain, 30),                    // Supabase
    shape("secret_", Plain, 40),                 // Notion, old
    shape("sgp_", Word, 32),                     // Sourcegraph
    shape("sha256~", Word, 30),                  // OpenShift
    shape("shpat_", Plain, 16),                  // Shopify
    shape("shpca_", Plain, 16),                  // Shopify
    shape("shppa_", Plain, 16),                  // Shopify
    shape("shpss_", Plain, 16),                  // Shopify
    shape("shptka_", Plain, 16),                 // Shopify
    shape("sk_live_", Word, 8),                  // Stripe
    shape("sk_test_", Word, 8),                  // Stripe
    picky("sk-", Word, 8, Need::DigitIfShort),   // OpenAI, Anthropic and many others
    picky("sk_", Word, 8, Need::DigitIfShort),
    shape("sl.", Word, 60),                   // Dropbox
    shape("sntrya_", Base64, 30),             // Sentry
    shape("sntrys_", Base64, 30),             // Sentry
    shape("sntryu_", Base64, 30),             // Sentry
    shape("sq0atp-", Word, 20),               // Square
    shape("sq0csp-", Word, 20),               // Square
    shape("tfp_", Word, 30),                  // Typeform
    shape("tgp_v1_", Word, 30),               // Together
    shape("tskey-", Word, 16),                // Tailscale
    shape("tvly-", Word, 20),                 // Tavily
    shape("v1.0-", Word, 100),                // Cloudflare origin CA
    shape("v2.local.", Dotted, 40),           // PASETO
    shape("v4.local.", Dotted, 40),           // PASETO
    shape("vca_", Plain, 24),                 // Vercel
    shape("vci_", Plain, 24),                 // Vercel
    shape("vck_", Plain, 24),                 // Vercel
    shape("vcp_", Plain, 24),                 // Vercel
    shape("wandb_v1_", Word, 30),             // Weights & Biases
    picky("whsec_", Base64, 16, Need::Digit), // Stripe, Svix
    shape("xai-", Plain, 20),                 // xAI
    shape("xapp-", Word, 8),                  // Slack
    shape("xkeysib-", Word, 40),              // Brevo
    shape("xoxa-", Word, 8),                  // Slack
    shape("xoxb-", Word, 8),                  // Slack
    shape("xoxc-", Word, 8),                  // Slack
    shape("xoxd-", Word, 8),                  // Slack
    shape("xoxe-", Word, 8),                  // Slack
    shape("xoxe.", Dotted, 16),               // Slack
    shape("xoxp-", Word, 8),                  // Slack
    shape("xoxr-", Word, 8),                  // Slack
    shape("xoxs-", Word, 8),                  // Slack
    shape("xwfp-", Word, 16),                 // Slack
    shape("y0_", Word, 40),                   // Yandex
    shape("ya29.", Dotted, 16),               // Google
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
pub(super) fn shapes_of(first: u8) -> &'static [Shape] {
    let (begin, end) = RANGES.get(usize::from(first)).copied().unwrap_or_default();
    &SHAPES[usize::from(begin)..usize::from(end)]
}

impl Body {
    /// How much of the text belongs to the key, without the dot that ends a sentence.
    pub(super) fn run(self, text: &str) -> usize {
        let end = text.find(|c| !self.has(c)).unwrap_or(text.len());
        text[..end].trim_end_matches('.').len()
    }

    pub(super) fn has(self, c: char) -> bool {
        match self {
            Word => is_key_char(c),
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
