//! An invalid file is reported with its line and the reason.

use jackfield_catalog::parse_agent_spec;

const HEADER: &str = "id = \"a\"\nname = \"A\"\nbins = [\"a\"]\n";

#[track_caller]
fn assert_refused(text: &str, line: Option<usize>, reason: &str) {
    let error = parse_agent_spec(text).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    assert!(error.reason.contains(reason), "{error}");
    assert!(!error.reason.contains('\n') && !error.reason.ends_with('.'), "{error}");
}

/// The header, then one `[[launch]]` on line 4.
fn launch(rest: &str) -> String {
    format!("{HEADER}[[launch]]\n{rest}")
}

#[test]
fn invalid_toml_is_reported_on_its_line() {
    assert_refused("id = \"a\"\nname = \n", Some(2), "");
    assert_refused("id = \"a\"\nid = \"b\"\n", Some(2), "duplicate key");
}

#[test]
fn unknown_and_missing_keys_are_reported_by_name() {
    assert_refused(&format!("{HEADER}color = 1\n[[launch]]\n"), Some(4), "unknown field `color`");
    assert_refused(&launch("arg = [\"acp\"]\n"), Some(5), "unknown field `arg`");
    assert_refused("id = \"a\"\nbins = [\"a\"]\n[[launch]]\n", None, "missing field `name`");
    assert_refused(&launch("args = \"acp\"\n"), Some(5), "invalid type");
    assert_refused(&launch("prompt = \"pigeon\"\n"), Some(5), "unknown variant `pigeon`");
    assert_refused(&launch("[models]\nfrom = \"oracle\"\n"), Some(6), "unknown variant `oracle`");
    assert_refused(&launch("[[launch.modes]]\nid = \"x\"\n"), Some(5), "missing field `name`");
}

#[test]
fn malformed_ids_and_programs_are_refused() {
    for id in ["", "A", "-a", ".a", "a b", "ä", "a/b", &"a".repeat(41)] {
        let text = launch("").replace("id = \"a\"", &format!("id = \"{id}\""));
        assert_refused(&text, Some(1), "is not an agent id");
    }
    assert!(parse_agent_spec(&launch("").replace("\"a\"", "\"0.a_b-c\"")).is_ok());
    assert_refused(&launch("").replace("[\"a\"]", "[]"), Some(3), "`bins` is empty");
    for bin in ["", "./a", "bin/a", "-a"] {
        let text = launch("").replace("[\"a\"]", &format!("[\"{bin}\"]"));
        assert_refused(&text, Some(3), "neither a program name nor an absolute path");
    }
    assert!(parse_agent_spec(&launch("bins = [\"/opt/a\"]")).is_ok());
    assert_refused(HEADER, None, "no `[[launch]]`");
}

#[test]
fn unknown_and_misplaced_placeholders_are_refused() {
    assert_refused(
        &launch("args = [\n  \"acp\",\n  \"{nonsense}\",\n]\n"),
        Some(7),
        "`{nonsense}`",
    );
    assert_refused(
        &launch("dialect = \"plain\"\nargs = [\"{session}\"]\n"),
        Some(6),
        "belongs in `resume`",
    );
    assert_refused(&launch("args = [\"{model}\"]\n"), Some(5), "belongs in `model`");
    assert_refused(&launch("model = [\"{reasoning}\"]\n"), Some(5), "belongs in `reasoning`");
    assert_refused(
        &launch("dialect = \"plain\"\nargs = [\"{prompt}\"]\n"),
        Some(6),
        "`prompt = \"argv\"`",
    );
    assert_refused(
        &launch("dialect = \"plain\"\nprompt = \"argv\"\nargs = [\"{file}\"]\n"),
        Some(7),
        "`prompt = \"file\"`",
    );
    assert_refused(
        &launch("[[launch.modes]]\nid = \"m\"\nname = \"M\"\nasks = true\nargs = [\"{prompt}\"]\n"),
        Some(9),
        "is not allowed here",
    );
    assert_refused(
        &launch("[[launch.flags]]\nargs = [\"{x}\"]\nneeds = \"x\"\n"),
        Some(6),
        "`{x}`",
    );
    assert!(parse_agent_spec(&launch("args = [\"--config={\\\"a\\\":{}}\", \"{cwd}\"]\n")).is_ok());
}

#[test]
fn prompt_placeholder_must_occur_exactly_once() {
    let argv = |rest: &str| launch(&format!("dialect = \"plain\"\nprompt = \"argv\"\n{rest}"));
    assert_refused(&argv("args = [\"run\"]\n"), Some(7), "`{prompt}` is missing");
    assert_refused(&argv("args = [\"{prompt}\", \"{prompt}\"]\n"), Some(7), "twice");
    assert_refused(
        &argv("args = [\"{prompt}\"]\nresume = [\"{session}\"]\n"),
        Some(8),
        "`{prompt}` is missing",
    );
    assert_refused(
        &launch("prompt = \"argv\"\nargs = [\"{prompt}\"]\n"),
        Some(4),
        "require a `dialect`",
    );
}

#[test]
fn unknown_dialects_and_duplicate_modes_are_refused() {
    assert_refused(&launch("dialect = \"klingon\"\n"), Some(5), "unknown dialect `klingon`");
    let mode = "[[launch.modes]]\nid = \"m\"\nname = \"M\"\nasks = true\n";
    assert_refused(&launch(&format!("{mode}{mode}")), Some(10), "mode `m` is defined twice");
    assert_refused(&launch(&mode.replace("\"m\"", "\"a b\"")), Some(6), "not a mode id");
}

#[test]
fn malformed_variable_names_are_refused() {
    assert_refused(&launch("[env]\npass = [\"OK_*\", \"A-B\"]\n"), Some(6), "`A-B`");
    assert_refused(&launch("[env]\nremove = [\"A*B\"]\n"), Some(6), "`A*B`");
    assert_refused(&launch("[env]\npass = [\"JACKFIELD_TOKEN\"]\n"), Some(6), "never passed");
    assert_refused(&launch("[env.set]\n\"A=B\" = \"1\"\n"), Some(5), "`A=B`");
    assert_refused(&launch("[auth]\nenv = [\"A*\"]\n"), None, "`A*`");
}

#[test]
fn incomplete_model_settings_are_refused() {
    assert_refused(&launch("[models]\nfrom = \"command\"\n"), Some(6), "requires `args`");
    assert_refused(
        &launch("[models]\nfrom = \"command\"\nargs = [\"m\"]\n"),
        Some(6),
        "requires `format`",
    );
    assert_refused(
        &launch("[models]\nfrom = \"settings\"\nformat = \"lines\"\n"),
        Some(6),
        "requires `file`",
    );
    assert_refused(&launch("[models]\nfallback = [\"ok\", \"-x\"]\n"), Some(6), "`-x`");
    assert_refused(&launch("[reasoning]\noptions = [\"very high\"]\n"), Some(6), "`very high`");
    assert!(parse_agent_spec(&launch("[models]\nfrom = \"acp\"\n")).is_ok());
}

#[test]
fn malformed_packages_are_refused() {
    let package = |rest: &str| format!("{HEADER}[[package]]\n{rest}\n[[launch]]\n");
    let bins = "bins = [\"a\"]";
    let refusals = [
        (bins, "a package has either `npm`, `pypi` or `archive`"),
        ("npm = \"a\"\npypi = \"a\"\nbins = [\"a\"]", "a package has either `npm`, `pypi` or"),
        ("npm = \"a b\"\nbins = [\"a\"]", "is not the name of an npm package"),
        ("npm = \"-g\"\nbins = [\"a\"]", "is not the name of an npm package"),
        ("npm = \"@a\"\nbins = [\"a\"]", "is not the name of an npm package"),
        ("pypi = \"a[b\"\nbins = [\"a\"]", "is not the name of a package on PyPI"),
        ("npm = \"a\"", "`bins` of the package is missing"),
        ("npm = \"a\"\nbins = [\"../a\"]", "is not the name of a program"),
        ("npm = \"a\"\nbins = [\"b\"]", "no package has the program `a`"),
        ("npm = \"a\"\nbins = [\"a\", \"a\"]", "program `a` is named twice"),
        ("pypi = \"a\"\nscripts = true\nbins = [\"a\"]", "only packages of npm"),
        ("pypi = \"a\"\npython = \"3\"\nbins = [\"a\"]", "is not a version of Python"),
    ];
    for (rest, reason) in refusals {
        let error = parse_agent_spec(&package(rest)).unwrap_err();
        assert!(error.reason.contains(reason), "{rest}: {error}");
        assert!(error.line.is_some(), "{rest}: {error}");
    }
    let with_install = |install: &str| {
        format!("{HEADER}install = \"{install}\"\n[[package]]\nnpm = \"a\"\n{bins}\n[[launch]]\n")
    };
    assert!(parse_agent_spec(&with_install("npm install -g a")).is_ok());
    assert_refused(&with_install("brew install a"), Some(4), "`npm install -g a`");
    let derived = parse_agent_spec(&package(&format!("pypi = \"a[b]\"\n{bins}"))).unwrap();
    assert_eq!(derived.install.as_deref(), Some("uv tool install 'a[b]'"));
}

#[test]
fn archives_need_a_checksum_an_encrypted_address_and_a_path_inside() {
    let sum = "0aB1".repeat(16);
    let archive = |platform: &str, url: &str, sha256: &str, program: &str| {
        format!(
            "{HEADER}[[package]]\nversion = \"1.2.0\"\nbins = [\"a\"]\n[package.archive.{platform}]\n\
             url = \"{url}\"\nsha256 = \"{sha256}\"\nprogram = '{program}'\n[[launch]]\n"
        )
    };
    let (linux, url) = ("linux-x86_64", "https://example.org/a.tar.gz");
    for good in [url, "http://127.0.0.1:80/a.tgz", "http://[::1]/a.tgz"] {
        let spec = parse_agent_spec(&archive(linux, good, &sum, "top/a")).unwrap();
        assert_eq!(spec.packages[0].archives[linux].url, good);
        assert_eq!(parse_agent_spec(&spec.to_toml()), Ok(spec));
    }
    let refusals = [
        (archive("plan9-mips", url, &sum, "a"), "the platforms are `darwin-aarch64`"),
        (archive(linux, "http://example.org/a.tgz", &sum, "a"), "begins with `https://`"),
        (archive(linux, "http://127.0.0.1@example.org/a.tgz", &sum, "a"), "begins with `https://`"),
        (archive(linux, "http://127.0.0.1.example.org/a.tgz", &sum, "a"), "begins with"),
        (archive(linux, "file:///a.tgz", &sum, "a"), "begins with `https://`"),
        (archive(linux, "https://example.org/a b.tgz", &sum, "a"), "begins with `https://`"),
        (archive(linux, "https://example.org/a.zip", &sum, "a"), "is not a `.tar.gz`"),
        (archive(linux, url, "00", "a"), "64 hexadecimal digits"),
        (archive(linux, url, &"g".repeat(64), "a"), "64 hexadecimal digits"),
        (archive(linux, url, &sum, "../a"), "is not a path in the archive"),
        (archive(linux, url, &sum, "/a"), "is not a path in the archive"),
        (archive(linux, url, &sum, r"b\a"), "is not a path in the archive"),
        (archive(linux, url, &sum, "a").replace("version = \"1.2.0\"\n", ""), "`version` of the"),
        (archive(linux, url, &sum, "a").replace("1.2.0", "../1"), "`version` of the archives"),
        (
            archive(linux, url, &sum, "a").replace("[\"a\"]\n[pack", "[\"a\", \"b\"]\n[pack"),
            "one program",
        ),
    ];
    for (text, reason) in refusals {
        let error = parse_agent_spec(&text).unwrap_err();
        assert!(error.reason.contains(reason), "{text}: {error}");
        assert!(error.line.is_some(), "{text}: {error}");
    }
}
