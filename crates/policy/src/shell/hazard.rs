//! Options with which a program writes a file that its pattern does not name, or runs another
//! program.
//!
//! A rule that allows `sort` allows a program that prints. `sort -o FILE` writes a file, so the
//! line is opaque. What a program does without any option is what its rule allows.

use super::{
    ShellWord, WordKind,
    expansion::{GlobToken, could_be_option, tokenize_word},
    sed_awk,
};

/// The hazardous options of some programs.
struct HazardousOptions {
    programs: &'static [&'static str],
    /// Letters of short options.
    short: &'static str,
    /// Letters of short options with a value: the rest of the word is not an option.
    valued: &'static str,
    /// Long options. Abbreviations match, too; options with a single hyphen match as a whole.
    long: &'static [&'static str],
}

const fn hazard(
    programs: &'static [&'static str],
    short: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> HazardousOptions {
    HazardousOptions { programs, short, valued, long }
}

const HAZARDS: &[HazardousOptions] = &[
    hazard(&["sort", "gsort"], "o", "kStT", &["--output", "--compress-program"]),
    hazard(
        &["tar", "gtar", "bsdtar"],
        "IFP",
        "",
        &[
            "--absolute-names",
            "--checkpoint-action",
            "--index-file",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
    hazard(&["rg"], "", "eftgTAMBCjmrE", &["--pre", "--hostname-bin"]),
    hazard(&["ag", "ack", "bat", "batcat", "delta"], "", "", &["--pager", "--config-file"]),
    hazard(
        &["curl"],
        "oOKDcTJ",
        "XHdFuAebmwrtxyYzCEQU",
        &[
            "--alt-svc",
            "--config",
            "--cookie-jar",
            "--dump-header",
            "--engine",
            "--etag-save",
            "--hsts",
            "--libcurl",
            "--output",
            "--output-dir",
            "--remote-header-name",
            "--remote-name",
            "--remote-name-all",
            "--stderr",
            "--trace",
            "--trace-ascii",
            "--upload-file",
        ],
    ),
    hazard(
        &["wget", "wget2"],
        "OPeoa",
        "UtTwQl",
        &[
            "--append-output",
            "--body-file",
            "--config",
            "--directory-prefix",
            "--execute",
            "--hsts-file",
            "--output-document",
            "--output-file",
            "--post-file",
            "--rejected-log",
            "--save-cookies",
            "--use-askpass",
            "--warc-file",
        ],
    ),
    hazard(&["man"], "PHC", "", &["--pager", "--html", "--preprocessor", "--config-file"]),
    hazard(
        &["less", "more", "most"],
        "oOk",
        "pPtT",
        &["--log-file", "--LOG-FILE", "--lesskey-content", "--lesskey-file", "--lesskey-src"],
    ),
    hazard(&["scp"], "oSFDJ", "iPlc", &[]),
    hazard(&["sftp"], "obSFDRJ", "iPl", &[]),
    hazard(
        &["rsync"],
        "eM",
        "fTB",
        &[
            "--backup-dir",
            "--config",
            "--daemon",
            "--log-file",
            "--only-write-batch",
            "--remote-option",
            "--rsh",
            "--rsync-path",
            "--temp-dir",
            "--write-batch",
        ],
    ),
    hazard(&["yq"], "is", "", &["--inplace", "--split-exp"]),
    hazard(&["split", "gsplit"], "", "", &["--filter"]),
    hazard(&["tree"], "oR", "LPI", &[]),
    hazard(&["date", "gdate"], "s", "dfr", &["--set"]),
    hazard(&["file"], "C", "m", &["--compile"]),
    hazard(&["iconv", "sdiff", "gpg", "gpg2", "xmllint"], "o", "", &["--output", "--shell"]),
    hazard(&["make", "gmake", "bmake"], "fCIE", "jlOW", MAKE),
    hazard(&["ninja"], "fC", "jklvd", &[]),
    hazard(&["cmake"], "PE", "DGSBUW", &["--debugger-pipe", "--toolchain"]),
    hazard(&["just"], "fdc", "", &["--command", "--justfile", "--shell", "--working-directory"]),
    hazard(
        &["npm", "pnpm", "yarn", "bun"],
        "Cc",
        "",
        &[
            "--call",
            "--cwd",
            "--dir",
            "--globalconfig",
            "--node-options",
            "--prefix",
            "--script-shell",
            "--use-yarnrc",
            "--userconfig",
        ],
    ),
    hazard(
        &["cargo"],
        "ZC",
        "pjF",
        &["--artifact-dir", "--config", "--manifest-path", "--out-dir", "--target-dir"],
    ),
    hazard(&["go"], "", "", GO),
    hazard(&["gofmt", "shfmt", "prettier"], "w", "", &["--write", "--plugin", "--config"]),
    hazard(&["clang-format", "autopep8", "isort"], "i", "", &["--in-place"]),
    hazard(
        &["cc", "gcc", "g++", "c++", "clang", "clang++"],
        "B",
        "oIlLDUxfmWgO",
        &["-wrapper", "-fplugin", "-specs", "--specs", "-load"],
    ),
    hazard(&["rustc"], "oCZ", "", &["--codegen", "--out-dir"]),
    hazard(
        &["pytest", "py.test"],
        "pco",
        "kmnWr",
        &[
            "--basetemp",
            "--confcutdir",
            "--junitxml",
            "--log-file",
            "--override-ini",
            "--pdbcls",
            "--rootdir",
        ],
    ),
    hazard(
        &["eslint"],
        "co",
        "",
        &[
            "--cache-location",
            "--config",
            "--fix",
            "--init",
            "--output-file",
            "--parser",
            "--plugin",
            "--resolve-plugins-relative-to",
            "--rulesdir",
        ],
    ),
    hazard(&["psql"], "cfoLv", "hUdp", &["--command", "--file", "--log-file", "--output", "--set"]),
    hazard(
        &["mysql", "mariadb"],
        "e",
        "huPD",
        &["--execute", "--init-command", "--pager", "--tee"],
    ),
    hazard(&["sqlite3"], "", "", &["-cmd", "-init", "--cmd", "--init"]),
    hazard(&["kubectl", "oc"], "", "", &["--kubeconfig", "--as"]),
    hazard(&["helm"], "", "", &["--kubeconfig", "--post-renderer"]),
    hazard(&["terraform", "tofu"], "", "", &["-chdir", "-out", "-state", "-backup"]),
    hazard(&["zip"], "T", "", &["--test", "--unzip-command"]),
    hazard(&["openssl"], "", "", &["-config", "-engine", "-keyout", "-out", "-writerand"]),
    hazard(&["nc", "ncat", "netcat"], "ec", "pwsi", &["--exec", "--lua-exec", "--sh-exec"]),
    hazard(
        &["pandoc"],
        "oFLd",
        "ft",
        &[
            "--defaults",
            "--extract-media",
            "--filter",
            "--log",
            "--lua-filter",
            "--output",
            "--pdf-engine",
        ],
    ),
    hazard(
        &["java", "javac"],
        "",
        "",
        &[
            "-agentlib",
            "-agentpath",
            "-javaagent",
            "-processorpath",
            "-XX:OnError",
            "-XX:OnOutOfMemoryError",
        ],
    ),
    hazard(&["mvn", "mvnw"], "fs", "PDTplr", &["--file", "--global-settings", "--settings"]),
    hazard(
        &["gradle", "gradlew"],
        "Ibc",
        "xPDp",
        &["--build-file", "--include-build", "--init-script", "--settings-file"],
    ),
    hazard(
        &["bazel", "bazelisk"],
        "",
        "",
        &["--bazelrc", "--override_repository", "--run_under", "--script_path"],
    ),
    hazard(&["hg"], "", "", &["--config", "--config-file", "--debugger"]),
    hazard(
        &["svn"],
        "",
        "",
        &["--config-dir", "--config-option", "--diff-cmd", "--diff3-cmd", "--editor-cmd"],
    ),
    hazard(&["jj"], "", "", &["--config", "--config-file", "--config-toml", "--tool"]),
    hazard(&["docker", "podman"], "H", "", &["--config", "--host"]),
    hazard(&["patch"], "oe", "pid", &["--ed", "--output"]),
    hazard(&["printf"], "v", "", &[]),
];

const MAKE: &[&str] = &["--directory", "--eval", "--file", "--include-dir", "--makefile"];

const GO: &[&str] = &[
    "-C",
    "-blockprofile",
    "-coverprofile",
    "-cpuprofile",
    "-exec",
    "-memprofile",
    "-modfile",
    "-mutexprofile",
    "-o",
    "-outputdir",
    "-overlay",
    "-pkgdir",
    "-toolexec",
    "-trace",
    "-vettool",
];

/// Whether a program has hazardous options or arguments.
pub(super) fn is_listed(name: &str) -> bool {
    let scripted =
        ["sed", "gsed", "awk", "gawk", "mawk", "nawk", "tee", "sponge", "dd", "uniq", "xxd"];
    scripted.contains(&name) || HAZARDS.iter().any(|it| it.programs.contains(&name))
}

/// Why the arguments of a program are hazardous; `None` if they are not.
pub(super) fn find_hazard(name: &str, arguments: &[ShellWord]) -> Option<&'static str> {
    const WRITES: &str = "an option makes it write a file or run a program";
    let operands = || operands(arguments);
    let named = HAZARDS.iter().filter(|it| it.programs.contains(&name));
    let hazardous = match name {
        "sed" | "gsed" => sed_awk::sed_is_hazardous(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => sed_awk::awk_is_hazardous(arguments),
        // They write to their operands.
        "tee" | "sponge" => {
            operands().any(|it| !it.text.starts_with("/dev/std") && it.text != "/dev/null")
        }
        "dd" => arguments.iter().any(|it| could_start(it, "of=")),
        "uniq" | "xxd" => operands().count() > 1,
        "make" | "gmake" | "bmake" if operands().any(|it| it.text.contains('=')) => true,
        "less" | "more" | "man" if arguments.iter().any(|it| it.text.starts_with('+')) => true,
        "sqlite3" if operands().any(|it| it.text.starts_with('.')) => true,
        "curl" if arguments.iter().any(|it| it.text.contains("%output")) => true,
        "tar" | "gtar" | "bsdtar"
            if operands().next().is_some_and(|it| it.text.contains(['I', 'F', 'P'])) =>
        {
            true
        }
        "socat" => !arguments.is_empty(),
        // The index of an array is evaluated and may contain a substitution.
        "test" | "[" | "printf" | "read" | "unset" | "declare" | "typeset" | "export"
        | "readonly" | "local" | "wait" | "getopts"
            if arguments.iter().any(|it| it.text.contains("$(") || it.text.contains('`')) =>
        {
            true
        }
        _ => false,
    };
    (hazardous || named.into_iter().any(|it| it.matches_any(arguments))).then_some(WRITES)
}

impl HazardousOptions {
    fn matches_any(&self, arguments: &[ShellWord]) -> bool {
        let options = arguments.iter().take_while(|it| it.text != "--");
        options.into_iter().any(|word| self.matches_word(word))
    }

    fn matches_word(&self, word: &ShellWord) -> bool {
        let text = word.text.as_str();
        if could_be_option(word) {
            return true;
        }
        let name = text.split_once('=').map_or(text, |it| it.0);
        if is_long_option(self.long, name) {
            return true;
        }
        let Some(letters) = text.strip_prefix('-').filter(|it| !it.starts_with('-')) else {
            return false;
        };
        let own = letters.chars().take_while(|it| !self.valued.contains(*it));
        own.into_iter().any(|it| self.short.contains(it)) || word.kind == WordKind::Open
    }
}

/// Whether a word is one of these long options, or an abbreviation of one.
pub(super) fn is_long_option(long: &[&str], name: &str) -> bool {
    long.iter().any(|it| match it.strip_prefix("--") {
        Some(_) => name.len() > 2 && name.starts_with("--") && it.starts_with(name),
        // `-exec` may be written with two hyphens.
        None => name == *it || name.strip_prefix('-') == Some(it),
    })
}

/// The words that are not options; after `--`, all words.
pub(super) fn operands(arguments: &[ShellWord]) -> impl Iterator<Item = &ShellWord> {
    let end = arguments.iter().position(|it| it.text == "--").unwrap_or(arguments.len());
    let before = arguments[..end].iter().filter(|it| !it.text.starts_with('-') || it.text == "-");
    before.chain(arguments[end..].iter().skip(1))
}

/// Whether a word begins with this text, or could after its expansion.
fn could_start(word: &ShellWord, start: &str) -> bool {
    if word.kind == WordKind::Fixed {
        return word.text.starts_with(start);
    }
    let mut wanted = start.chars();
    for token in tokenize_word(word) {
        match (token, wanted.next()) {
            (GlobToken::Char(it), Some(next)) if it == next => {}
            (GlobToken::Char(_), Some(_)) => return false,
            (_, None | Some(_)) => return true,
        }
    }
    wanted.next().is_none()
}
