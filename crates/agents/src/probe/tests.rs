//! Programs that answer, refuse, hang and break: shell scripts in a folder that is a whole machine.

use super::*;
use jackfield_catalog::parse_agent_spec;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

struct TestMachine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl TestMachine {
    fn new() -> TestMachine {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().join("bin").display());
        fs::create_dir(dir.path().join("bin")).unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let env = [("PATH", path), ("HOME", home), ("JACKFIELD_PROGRAM_DIRS", String::new())];
        TestMachine { dir, env: env.map(|(name, value)| (name.to_owned(), value)).into() }
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        self.program(name, &format!("#!/bin/sh\n{text}\n"))
    }

    fn locations(&self) -> ProgramLocations {
        ProgramLocations::new(self.env.iter().cloned())
    }

    /// Asks one agent and looks at it.
    fn probe(&self, spec: &AgentSpec, within: Option<Duration>) -> (ProbeResult, AgentStatus) {
        let mut results = self.probe_all(vec![spec.clone()], within);
        let result = results.remove(0).1;
        let status = AgentStatus::new(spec, &self.locations(), Some(&result));
        (result, status)
    }

    fn probe_all(
        &self,
        specs: Vec<AgentSpec>,
        within: Option<Duration>,
    ) -> Vec<(AgentSpec, ProbeResult)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut results = Vec::new();
        runtime.block_on(async {
            let prober = AgentProber::new(self.locations(), within).unwrap();
            prober.probe(specs, |spec, result| results.push((spec, result))).await;
        });
        results
    }
}

fn spec(more: &str) -> AgentSpec {
    let text = format!("id = \"tool\"\nname = \"Tool\"\nbins = [\"tool\"]\n{more}\n");
    parse_agent_spec(&text).unwrap()
}

const ACP: &str = "[[launch]]\nargs = [\"acp\"]\n";
const PLAIN: &str = "[[launch]]\ndialect = \"plain\"\n";

fn reasons(diagnostics: &[AgentDiagnostic]) -> Vec<DiagnosticReason> {
    diagnostics.iter().map(|it| it.reason).collect()
}

#[test]
fn version_login_models_and_flags_are_probed() {
    let machine = TestMachine::new();
    machine.script(
        "tool",
        "case \"$*\" in --version) echo; echo 'tool 1.2.3';; 'login status') echo Logged in;; \
         models) printf 'one\\ntwo\\n';; --help) echo 'has --new';; esac",
    );
    let spec = spec(
        "[auth]\nargs = [\"login\", \"status\"]\nmissing = [\"not logged in\"]\n\
         [models]\nfrom = \"command\"\nargs = [\"models\"]\nformat = \"lines\"\nfallback = [\"x\"]\n\
         [[launch]]\ndialect = \"plain\"\n\
         [[launch.flags]]\nargs = [\"--new\"]\nneeds = \"--new\"\n\
         [[launch.flags]]\nargs = [\"--newer\"]\nneeds = \"--newer\"\n",
    );
    let (result, status) = machine.probe(&spec, None);
    assert_eq!(result.version.as_deref(), Some("tool 1.2.3"));
    assert_eq!(result.flags, [[true, false]]);
    assert_eq!((status.login, status.models.source), (LoginState::Ok, ModelListSource::Command));
    assert_eq!(status.models.models.len(), 2);
    assert!(status.is_usable() && status.diagnostics.is_empty(), "{:?}", status.diagnostics);
}

#[test]
fn missing_login_is_reported_and_a_key_counts_as_login() {
    let mut machine = TestMachine::new();
    machine.script("tool", "case $1 in login) echo 'Not logged in' >&2; exit 1;; *) echo 1;; esac");
    let spec = spec(&format!(
        "[auth]\nargs = [\"login\"]\nenv = [\"TOOL_KEY\"]\nmissing = [\"not logged in\"]\n{PLAIN}"
    ));
    let (_, status) = machine.probe(&spec, None);
    assert_eq!(status.login, LoginState::Missing);
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::AuthMissing]);
    assert!(status.diagnostics[0].fix.contains("TOOL_KEY"), "{:?}", status.diagnostics);
    machine.env.push(("TOOL_KEY".into(), "k".into()));
    let (result, status) = machine.probe(&spec, None);
    assert_eq!(result.login, None, "nothing was asked");
    assert_eq!(
        (status.login, status.login_variable.as_deref()),
        (LoginState::Ok, Some("TOOL_KEY"))
    );
    assert!(status.diagnostics.is_empty());
}

#[test]
fn broken_shim_is_reported_and_not_queried_further() {
    let machine = TestMachine::new();
    let program = machine.program("tool", "#!/no/such/interpreter\n");
    let (result, status) = machine.probe(&spec(ACP), None);
    assert!(result.is_unusable() && !status.is_usable());
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::ShimBroken]);
    assert!(status.diagnostics[0].message.contains(program.to_str().unwrap()));
    machine.script("tool", "exit 127");
    let (_, status) = machine.probe(&spec(ACP), None);
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::ShimBroken]);
    machine.script("tool", "exit 126");
    let (_, status) = machine.probe(&spec(ACP), None);
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::NotExecutable]);
}

#[test]
fn file_that_is_not_executable_is_reported_without_a_start() {
    let machine = TestMachine::new();
    let program = machine.script("tool", "");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    let status = AgentStatus::new(&spec(ACP), &machine.locations(), None);
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::NotExecutable]);
    assert_eq!(status.diagnostics[0].fix, format!("chmod +x {}", program.display()));
}

#[test]
fn program_without_a_version_is_still_usable() {
    let machine = TestMachine::new();
    machine.script("tool", "echo 'unknown option' >&2; exit 2");
    let (_, status) = machine.probe(&spec(PLAIN), None);
    assert!(status.is_usable());
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::VersionProbeFailed]);
    assert!(status.diagnostics[0].message.contains("unknown option"));
}

#[test]
fn hanging_program_is_killed_and_does_not_delay_others() {
    let machine = TestMachine::new();
    let pids = machine.dir.path().join("pids");
    let hang = format!("sleep 600 & echo $$ $! >> {}\nwait", pids.display());
    let mut specs = Vec::new();
    for number in 0..12 {
        let id = format!("tool{number}");
        machine.script(&id, if number % 6 == 0 { hang.as_str() } else { "echo 7" });
        specs.push(AgentSpec { bins: vec![id.clone()], id, ..spec(ACP) });
    }
    let began = std::time::Instant::now();
    let results = machine.probe_all(specs, Some(Duration::from_secs(3)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(results.len(), 12);
    assert_eq!(results.iter().filter(|it| it.1.version.as_deref() == Some("7")).count(), 10);
    assert!(
        results[..10].iter().all(|it| it.1.version.is_some()),
        "finished probes are reported first"
    );
    let late = &results[11].1;
    assert_eq!(reasons(&late.diagnostics), [DiagnosticReason::VersionProbeFailed]);
    let noted = fs::read_to_string(&pids).unwrap();
    assert_eq!(noted.split_whitespace().count(), 4);
    let gone = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    };
    for pid in noted.split_whitespace() {
        // Killed it is; a busy machine takes a moment to carry it out.
        while !gone(pid) {
            assert!(began.elapsed() < Duration::from_secs(20), "{pid} is still there");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn process_left_running_does_not_delay_the_probe() {
    let machine = TestMachine::new();
    machine.script("tool", "sleep 600 &\necho 5");
    let began = std::time::Instant::now();
    let (result, _) = machine.probe(&spec(ACP), None);
    assert_eq!(result.version.as_deref(), Some("5"));
    assert!(began.elapsed() < Duration::from_mins(1));
}

#[test]
fn program_runs_in_an_empty_folder_with_its_own_environment() {
    let mut machine = TestMachine::new();
    let seen = machine.dir.path().join("seen");
    let look = format!("{{ ls -A; env; pwd; }} > {}; echo 1", seen.display());
    machine.script("tool", &look);
    machine.env.push(("TOOL_KEY".into(), "mine".into()));
    machine.env.push(("OTHER_KEY".into(), "theirs".into()));
    machine.probe(&spec("[env]\npass = [\"TOOL_*\"]\n[[launch]]\n"), None);
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("TOOL_KEY=mine"));
    assert!(!seen.contains("OTHER_KEY") && !seen.contains("JACKFIELD"), "{seen}");
    let cwd = seen.lines().last().unwrap();
    assert!(cwd.contains("jackfield-probe-"), "{cwd}");
    assert!(!std::path::Path::new(cwd).exists(), "it is removed again");
}

const AGENT: &str = r#"while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"delete\":{}}}}}" ;;
    *'"session/new"'*)
      echo '{"jsonrpc":"2.0","id":77,"method":"fs/read_text_file","params":{}}'
      read -r refused
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\",\"models\":{\"currentModelId\":\"b\",\"availableModels\":[{\"modelId\":\"a\",\"name\":\"A\"},{\"modelId\":\"b\"}]}}}" ;;
    *) echo "$line" >> DELETED; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
  esac
done"#;

fn acp_spec() -> AgentSpec {
    spec(&format!("[models]\nfrom = \"acp\"\nfallback = [\"f\"]\n{ACP}"))
}

#[test]
fn models_are_queried_in_a_session_that_is_deleted() {
    let machine = TestMachine::new();
    let deleted = machine.dir.path().join("deleted");
    let agent = AGENT.replace("DELETED", deleted.to_str().unwrap());
    machine.script("tool", &format!("[ \"$1\" = acp ] || {{ echo 1; exit; }}\n{agent}"));
    let (_, status) = machine.probe(&acp_spec(), None);
    assert_eq!(status.models.source, ModelListSource::Acp, "{:?}", status.diagnostics);
    assert_eq!(status.models.current.as_deref(), Some("b"));
    assert_eq!(status.models.models.len(), 2);
    let deleted = fs::read_to_string(deleted).unwrap();
    assert!(deleted.contains("session/delete"), "{deleted}");
}

#[test]
fn agent_that_opens_no_session_gets_the_fallback_models() {
    let machine = TestMachine::new();
    let error = r#"read -r a; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"log in"}}'; cat"#;
    let cases = [
        ("exit 1", LoginState::Unknown),
        (error, LoginState::Missing),
        ("cat", LoginState::Unknown),
    ];
    for (acp, login) in cases {
        machine.script("tool", &format!("[ \"$1\" = acp ] || {{ echo 1; exit; }}\n{acp}"));
        let (_, status) = machine.probe(&acp_spec(), Some(Duration::from_secs(1)));
        assert_eq!(status.models.source, ModelListSource::Fallback);
        assert_eq!(status.models.models[0].id, "f");
        assert_eq!(status.login, login, "{acp}");
        assert!(reasons(&status.diagnostics).contains(&DiagnosticReason::ModelsFallback), "{acp}");
    }
}

#[test]
fn program_whose_acp_mode_fails_is_told_from_a_healthy_one() {
    let machine = TestMachine::new();
    machine.script(
        "tool",
        "case $1 in --version) echo 1;; new-acp) read -r line; \
         echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'; cat > /dev/null;; \
         *) echo \"error: unknown option $1\" >&2; exit 2;; esac",
    );
    let (_, healthy) = machine.probe(&spec("[[launch]]\nargs = [\"new-acp\"]\n"), None);
    assert!(healthy.is_usable() && healthy.diagnostics.is_empty(), "{:?}", healthy.diagnostics);
    assert_eq!(healthy.acp, Some(AcpState::Works));
    let (_, broken) = machine.probe(&spec(ACP), None);
    assert!(!broken.is_usable());
    assert_eq!(broken.acp, Some(AcpState::Failed));
    assert_eq!(reasons(&broken.diagnostics), [DiagnosticReason::LaunchVariantFailed]);
    let message = &broken.diagnostics[0].message;
    assert!(message.contains("ACP mode") && message.contains("unknown option acp"), "{message}");
    let both =
        spec("[[launch]]\nargs = [\"acp\"]\n[[launch]]\nname = \"new\"\nargs = [\"new-acp\"]\n");
    let (_, status) = machine.probe(&both, None);
    assert_eq!((status.is_usable(), status.chosen), (true, Some(1)));
    assert_eq!(status.diagnostics[0].severity, DiagnosticSeverity::Warning);
    assert!(status.diagnostics[0].fix.contains("`new`"), "{:?}", status.diagnostics);
    assert_eq!(status.acp, Some(AcpState::Works));
}

#[test]
fn silent_acp_mode_is_not_taken_for_a_working_one() {
    let machine = TestMachine::new();
    machine
        .script("tool", "case $1 in --version) echo 1;; *) while read -r line; do :; done;; esac");
    let (late, status) = machine.probe(&spec(ACP), Some(Duration::from_millis(500)));
    assert_eq!(status.acp, Some(AcpState::NoAnswer));
    let known = ProbeResult { acp: Some(AcpState::Works), ..ProbeResult::default() };
    assert_eq!(late.or_earlier(&known).acp, Some(AcpState::Works), "the longer probe counts");
}

#[test]
fn settings_file_is_read_and_errors_in_it_are_reported() {
    let machine = TestMachine::new();
    machine.script("tool", "echo 1");
    let spec = spec(&format!(
        "[models]\nfrom = \"settings\"\nformat = \"qwen-settings\"\nfile = \"~/settings.json\"\n\
         fallback = [\"f\"]\n{ACP}"
    ));
    let file = machine.dir.path().join("settings.json");
    let look = || AgentStatus::new(&spec, &machine.locations(), None);
    fs::write(&file, r#"{"model":{"name":"mine"}}"#).unwrap();
    let status = look();
    let ids: Vec<&str> = status.models.models.iter().map(|it| it.id.as_str()).collect();
    assert_eq!((ids, status.models.source), (vec!["mine", "f"], ModelListSource::Settings));
    for garbage in ["{ \"model\": ", "{}", "\u{0}\u{1}"] {
        fs::write(&file, garbage).unwrap();
        let status = look();
        assert_eq!(status.models.source, ModelListSource::Fallback);
        assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::ModelsFallback], "{garbage}");
        assert!(status.diagnostics[0].message.contains("settings.json"));
    }
}

#[test]
fn wrong_variable_is_reported() {
    let mut machine = TestMachine::new();
    machine.script("tool", "echo 1");
    machine.env.push(("TOOL_BIN".into(), "tool".into()));
    let spec = AgentSpec { bin_env: Some("TOOL_BIN".into()), ..spec(ACP) };
    let status = AgentStatus::new(&spec, &machine.locations(), None);
    assert_eq!(reasons(&status.diagnostics), [DiagnosticReason::ConfiguredBinInvalid]);
    assert!(!status.is_usable());
}

#[test]
fn result_is_valid_while_program_and_spec_are_unchanged() {
    let machine = TestMachine::new();
    machine.script("tool", "echo 1");
    let spec = spec(ACP);
    let found = AgentStatus::find_program(&spec, &machine.locations()).unwrap();
    let path = machine.dir.path().join("state/probe.json");
    let mut cache = ProbeCache::load(&path);
    let result = ProbeResult { version: Some("1".into()), ..ProbeResult::default() };
    cache.insert(&spec, &found, result.clone());
    cache.save().unwrap();
    let cache = ProbeCache::load(&path);
    assert_eq!(cache.get(&spec, &found), Some(&result));
    assert_eq!(cache.get(&AgentSpec { note: Some("new".into()), ..spec.clone() }, &found), None);
    let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    fs::File::options().write(true).open(&found.path).unwrap().set_times(times).unwrap();
    assert_eq!(cache.get(&spec, &found), None, "the program was replaced");
    fs::write(&path, "{").unwrap();
    assert_eq!(ProbeCache::load(&path).get(&spec, &found), None);
}

#[test]
fn missing_result_is_taken_from_an_earlier_probe() {
    let failed = diagnostic::describe_missing_version("tool --version", "it did not end in time");
    let now = ProbeResult { diagnostics: vec![failed], ..ProbeResult::default() };
    let earlier = ProbeResult { version: Some("1".into()), ..ProbeResult::default() };
    assert_eq!(now.clone().or_earlier(&earlier), earlier);
    assert_eq!(now.clone().or_earlier(&ProbeResult::default()), now);
}
