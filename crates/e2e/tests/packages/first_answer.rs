//! From nothing to the first answer of an agent, on an empty machine.

use super::{machine::EmptyMachine, make_packages, print};
use jackfield_e2e::{assert_takes_less, home::binary};
use jackfield_test_support::file_server::FileServer;
use std::time::{Duration, Instant};

const FIRST_ANSWER_MAX: Duration = Duration::from_secs(30);

#[test]
#[ignore = "nightly: copies a Debian system"]
fn install_script_on_an_empty_machine_leads_to_the_first_answer_within_30_s() {
    let packages = make_packages(&["archive", "index"]);
    let server = FileServer::start(packages.path());
    let url = server.url();
    let script = format!(
        "export JACKFIELD_BASE_URL={url}\n\
         wget -q -O - {url}/install.sh | sh >&2\n\
         test -f .local/share/man/man1/jackfield.1\n\
         .local/bin/jackfield run hello -- /usr/local/bin/fake-agent"
    );
    assert_takes_less(FIRST_ANSWER_MAX, || {
        let Some(machine) = EmptyMachine::new() else { return Duration::ZERO };
        machine.copy_in(&binary("fake-agent"), "/usr/local/bin");
        let start = Instant::now();
        let output = machine.run_as_user(&script);
        let time = start.elapsed();
        assert!(output.status.success(), "{}", print(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "you said: hello");
        report(time);
        time
    });
}

#[expect(clippy::print_stderr, reason = "a figure for the documentation")]
fn report(time: Duration) {
    eprintln!("from install.sh to the first answer: {} ms", time.as_millis());
}
