//! Programs that answer, refuse, hang and break: shell scripts in a folder that is a whole machine.

use super::*;
use jackfield_catalogue::parse;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

struct Machine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().join("bin").display());
        fs::create_dir(dir.path().join("bin")).unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let env = [("PATH", path), ("HOME", home), ("JACKFIELD_PROGRAM_DIRS", String::new())];
        Machine { dir, env: env.map(|(name, value)| (name.to_owned(), value)).into() }
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

    fn places(&self) -> Places {
        Places::new(self.env.iter().cloned())
    }

    /// Asks one agent and looks at it.
    fn probe(&self, spec: &Spec, within: Option<Duration>) -> (Knowledge, Standing) {
        let mut told = self.probe_all(vec![spec.clone()], within);
        let knowledge = told.remove(0).1;
        let standing = Standing::new(spec, &self.places(), Some(&knowledge));
        (knowledge, standing)
    }

    fn probe_all(&self, specs: Vec<Spec>, within: Option<Duration>) -> Vec<(Spec, Knowledge)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut told = Vec::new();
        runtime.block_on(async {
            let prober = Prober::new(self.places(), within).unwrap();
            prober.probe(specs, |spec, knowledge| told.push((spec, knowledge))).await;
        });
        told
    }
}

fn spec(more: &str) -> Spec {
    let text = format!("id = \"tool\"\nname = \"Tool\"\nbins = [\"tool\"]\n{more}\n");
    parse(&text).unwrap()
}

const ACP: &str = "[[launch]]\nargs = [\"acp\"]\n";

fn reasons(diagnostics: &[Diagnostic]) -> Vec<Reason> {
    diagnostics.iter().map(|it| it.reason).collect()
}

#[test]
fn version_login_models_and_flags_are_learned() {
    let machine = Machine::new();
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
    let (knowledge, standing) = machine.probe(&spec, None);
    assert_eq!(knowledge.version.as_deref(), Some("tool 1.2.3"));
    assert_eq!(knowledge.flags, [[true, false]]);
    assert_eq!((standing.login, standing.models.source), (Login::Ok, Source::Command));
    assert_eq!(standing.models.models.len(), 2);
    assert!(standing.is_usable() && standing.diagnostics.is_empty(), "{:?}", standing.diagnostics);
}

#[test]
fn a_program_without_a_login_says_so_and_a_key_is_a_login() {
    let mut machine = Machine::new();
    machine.script("tool", "case $1 in login) echo 'Not logged in' >&2; exit 1;; *) echo 1;; esac");
    let spec = spec(&format!(
        "[auth]\nargs = [\"login\"]\nenv = [\"TOOL_KEY\"]\nmissing = [\"not logged in\"]\n{ACP}"
    ));
    let (_, standing) = machine.probe(&spec, None);
    assert_eq!(standing.login, Login::Missing);
    assert_eq!(reasons(&standing.diagnostics), [Reason::AuthMissing]);
    assert!(standing.diagnostics[0].fix.contains("TOOL_KEY"), "{:?}", standing.diagnostics);
    machine.env.push(("TOOL_KEY".into(), "k".into()));
    let (knowledge, standing) = machine.probe(&spec, None);
    assert_eq!(knowledge.login, None, "nothing was asked");
    assert_eq!((standing.login, standing.login_by.as_deref()), (Login::Ok, Some("TOOL_KEY")));
    assert!(standing.diagnostics.is_empty());
}

#[test]
fn a_broken_shim_is_told_and_asked_nothing_else() {
    let machine = Machine::new();
    let program = machine.program("tool", "#!/no/such/interpreter\n");
    let (knowledge, standing) = machine.probe(&spec(ACP), None);
    assert!(knowledge.is_hopeless() && !standing.is_usable());
    assert_eq!(reasons(&standing.diagnostics), [Reason::ShimBroken]);
    assert!(standing.diagnostics[0].message.contains(program.to_str().unwrap()));
    machine.script("tool", "exit 127");
    let (_, standing) = machine.probe(&spec(ACP), None);
    assert_eq!(reasons(&standing.diagnostics), [Reason::ShimBroken]);
    machine.script("tool", "exit 126");
    let (_, standing) = machine.probe(&spec(ACP), None);
    assert_eq!(reasons(&standing.diagnostics), [Reason::NotExecutable]);
}

#[test]
fn a_file_that_may_not_be_run_is_found_out_without_running_it() {
    let machine = Machine::new();
    let program = machine.script("tool", "");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    let standing = Standing::new(&spec(ACP), &machine.places(), None);
    assert_eq!(reasons(&standing.diagnostics), [Reason::NotExecutable]);
    assert_eq!(standing.diagnostics[0].fix, format!("chmod +x {}", program.display()));
}

#[test]
fn a_program_that_fails_to_tell_its_version_is_still_usable() {
    let machine = Machine::new();
    machine.script("tool", "echo 'unknown option' >&2; exit 2");
    let (_, standing) = machine.probe(&spec(ACP), None);
    assert!(standing.is_usable());
    assert_eq!(reasons(&standing.diagnostics), [Reason::VersionProbeFailed]);
    assert!(standing.diagnostics[0].message.contains("unknown option"));
}

#[test]
fn one_that_hangs_is_ended_with_everything_it_started_and_keeps_nobody_waiting() {
    let machine = Machine::new();
    let pids = machine.dir.path().join("pids");
    let hang = format!("sleep 600 & echo $$ $! >> {}\nwait", pids.display());
    let mut specs = Vec::new();
    for number in 0..12 {
        let id = format!("tool{number}");
        machine.script(&id, if number % 6 == 0 { hang.as_str() } else { "echo 7" });
        specs.push(Spec { bins: vec![id.clone()], id, ..spec(ACP) });
    }
    let began = std::time::Instant::now();
    let told = machine.probe_all(specs, Some(Duration::from_secs(3)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(told.len(), 12);
    assert_eq!(told.iter().filter(|it| it.1.version.as_deref() == Some("7")).count(), 10);
    assert!(told[..10].iter().all(|it| it.1.version.is_some()), "those that answer are told first");
    let late = &told[11].1;
    assert_eq!(reasons(&late.diagnostics), [Reason::VersionProbeFailed]);
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
fn what_is_left_running_delays_nothing() {
    let machine = Machine::new();
    machine.script("tool", "sleep 600 &\necho 5");
    let began = std::time::Instant::now();
    let (knowledge, _) = machine.probe(&spec(ACP), None);
    assert_eq!(knowledge.version.as_deref(), Some("5"));
    assert!(began.elapsed() < Duration::from_mins(1));
}

#[test]
fn programs_run_in_an_empty_folder_and_see_only_what_is_theirs() {
    let mut machine = Machine::new();
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

fn acp_spec() -> Spec {
    spec(&format!("[models]\nfrom = \"acp\"\nfallback = [\"f\"]\n{ACP}"))
}

#[test]
fn models_are_asked_for_in_a_session_that_is_removed_again() {
    let machine = Machine::new();
    let deleted = machine.dir.path().join("deleted");
    let agent = AGENT.replace("DELETED", deleted.to_str().unwrap());
    machine.script("tool", &format!("[ \"$1\" = acp ] || {{ echo 1; exit; }}\n{agent}"));
    let (_, standing) = machine.probe(&acp_spec(), None);
    assert_eq!(standing.models.source, Source::Acp, "{:?}", standing.diagnostics);
    assert_eq!(standing.models.current.as_deref(), Some("b"));
    assert_eq!(standing.models.models.len(), 2);
    let deleted = fs::read_to_string(deleted).unwrap();
    assert!(deleted.contains("session/delete"), "{deleted}");
}

#[test]
fn an_agent_that_opens_no_session_has_the_models_of_its_file() {
    let machine = Machine::new();
    let error = r#"read -r a; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"log in"}}'; cat"#;
    let cases = [("exit 1", Login::Unknown), (error, Login::Missing), ("cat", Login::Unknown)];
    for (acp, login) in cases {
        machine.script("tool", &format!("[ \"$1\" = acp ] || {{ echo 1; exit; }}\n{acp}"));
        let (_, standing) = machine.probe(&acp_spec(), Some(Duration::from_secs(1)));
        assert_eq!(standing.models.source, Source::Fallback);
        assert_eq!(standing.models.models[0].id, "f");
        assert_eq!(standing.login, login, "{acp}");
        assert!(reasons(&standing.diagnostics).contains(&Reason::ModelsFallback), "{acp}");
    }
}

#[test]
fn a_settings_file_is_read_and_garbage_in_it_is_told() {
    let machine = Machine::new();
    machine.script("tool", "echo 1");
    let spec = spec(&format!(
        "[models]\nfrom = \"settings\"\nformat = \"qwen-settings\"\nfile = \"~/settings.json\"\n\
         fallback = [\"f\"]\n{ACP}"
    ));
    let file = machine.dir.path().join("settings.json");
    let look = || Standing::new(&spec, &machine.places(), None);
    fs::write(&file, r#"{"model":{"name":"mine"}}"#).unwrap();
    let standing = look();
    let ids: Vec<&str> = standing.models.models.iter().map(|it| it.id.as_str()).collect();
    assert_eq!((ids, standing.models.source), (vec!["mine", "f"], Source::Settings));
    for garbage in ["{ \"model\": ", "{}", "\u{0}\u{1}"] {
        fs::write(&file, garbage).unwrap();
        let standing = look();
        assert_eq!(standing.models.source, Source::Fallback);
        assert_eq!(reasons(&standing.diagnostics), [Reason::ModelsFallback], "{garbage}");
        assert!(standing.diagnostics[0].message.contains("settings.json"));
    }
}

#[test]
fn a_wrong_variable_is_told() {
    let mut machine = Machine::new();
    machine.script("tool", "echo 1");
    machine.env.push(("TOOL_BIN".into(), "tool".into()));
    let spec = Spec { bin_env: Some("TOOL_BIN".into()), ..spec(ACP) };
    let standing = Standing::new(&spec, &machine.places(), None);
    assert_eq!(reasons(&standing.diagnostics), [Reason::ConfiguredBinInvalid]);
    assert!(!standing.is_usable());
}

#[test]
fn knowledge_is_kept_while_program_and_spec_stay_the_same() {
    let machine = Machine::new();
    machine.script("tool", "echo 1");
    let spec = spec(ACP);
    let found = Standing::program(&spec, &machine.places()).unwrap();
    let path = machine.dir.path().join("state/probe.json");
    let mut cache = Cache::load(&path);
    let knowledge = Knowledge { version: Some("1".into()), ..Knowledge::default() };
    cache.put(&spec, &found, knowledge.clone());
    cache.save().unwrap();
    let cache = Cache::load(&path);
    assert_eq!(cache.get(&spec, &found), Some(&knowledge));
    assert_eq!(cache.get(&Spec { note: Some("new".into()), ..spec.clone() }, &found), None);
    let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    fs::File::options().write(true).open(&found.path).unwrap().set_times(times).unwrap();
    assert_eq!(cache.get(&spec, &found), None, "the program was replaced");
    fs::write(&path, "{").unwrap();
    assert_eq!(Cache::load(&path).get(&spec, &found), None);
}

#[test]
fn what_was_not_told_this_time_is_remembered() {
    let failed = diagnostic::version_failed("tool --version", "it did not end in time");
    let now = Knowledge { diagnostics: vec![failed], ..Knowledge::default() };
    let earlier = Knowledge { version: Some("1".into()), ..Knowledge::default() };
    assert_eq!(now.clone().or(&earlier), earlier);
    assert_eq!(now.clone().or(&Knowledge::default()), now);
}
