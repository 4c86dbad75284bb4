//! Several who share one daemon or one fleet, each with a token of its own, over every way there is to come
//! in: `walls` is what they know of each other, `rest` the same by the API, `quotas` how much they may have,
//! `fleet` all of it behind a gateway, `warning` what the operator is warned about at the start.

mod fleet;
mod quotas;
mod rest;
mod walls;
mod warning;

use jackfield_e2e::{
    Client, Daemon, Home,
    http::{Web, listening_address},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);

/// A daemon with the tenants `acme` and `other`, which listens on TCP and HTTP.
struct Town {
    daemon: Daemon,
    tcp: SocketAddr,
    web: Web,
    tokens: BTreeMap<&'static str, String>,
    home: Home,
}

/// How a client comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tcp,
    WebSocket,
    Http,
}

const WAYS: [Way; 3] = [Way::Tcp, Way::WebSocket, Way::Http];

impl Town {
    fn new() -> Town {
        Town::with("")
    }

    /// The same where `acme` has more in the file.
    fn with(more: &str) -> Town {
        let home = Home::new();
        configure(&home);
        let tokens = BTreeMap::from(["acme", "other"].map(|it| (it, token(&home, it))));
        let file = write_tenants(&home, &tokens, more);
        let listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "http://127.0.0.1:0"];
        let tenants = ["--tenants", file.to_str().unwrap()];
        let daemon = home.serve(&[&listen[..], &tenants[..]].concat());
        let (tcp, web) = (listening_address(&home, "tcp"), Web::of(&home));
        Town { daemon, tcp, web, tokens, home }
    }

    /// The front as a tenant comes to it.
    fn web_of(&self, tenant: &str) -> Web {
        Web { token: self.tokens[tenant].clone(), ..self.web.clone() }
    }

    /// A client of a tenant that has said hello.
    fn client(&self, tenant: &str, way: Way) -> Client {
        let mut client = self.stranger(tenant, way);
        client.hello_aware();
        client
    }

    /// One that has said nothing.
    fn stranger(&self, tenant: &str, way: Way) -> Client {
        match way {
            Way::Tcp => self.by_tcp(&self.tokens[tenant]),
            Way::WebSocket => self.web_of(tenant).websocket().0,
            Way::Http => self.web_of(tenant).http().0,
        }
    }

    fn by_tcp(&self, token: &str) -> Client {
        let stream = TcpStream::connect(self.tcp).unwrap();
        let [reader, writer] = [(); 2].map(|()| Box::new(stream.try_clone().unwrap()));
        let mut client = Client::new(reader, writer);
        client.notify("_jackfield/auth", &json!({ "token": token }));
        client
    }

    /// A client on the socket, which sees everything.
    fn operator(&self) -> Client {
        let mut client = self.home.dial();
        client.hello_aware();
        client
    }

    fn finish(self) {
        self.daemon.stop();
    }
}

/// The fake agent by name: tenants use what is known here.
fn configure(home: &Home) {
    let agent = json!(home.fake_agent(&["--state", home.path().join("memory").to_str().unwrap()]));
    let config = format!("default_agent = \"fake\"\n[agents.fake]\ncommand = {agent}\n");
    fs::create_dir_all(home.path().join("config")).unwrap();
    fs::write(home.path().join("config/config.toml"), config).unwrap();
}

/// As the command makes it.
fn token(home: &Home, tenant: &str) -> String {
    let made = home.run(&["tenants", "token", tenant, "--format", "quiet"], BOUND);
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// The file as an operator writes it, with hashes that anybody can make.
fn write_tenants(home: &Home, tokens: &BTreeMap<&str, String>, more_of_acme: &str) -> PathBuf {
    let file = home.path().join("tenants.toml");
    let roots = json!([home.path()]);
    let entry = |(name, token): (&&str, &String)| {
        let more = if *name == "acme" { more_of_acme } else { "" };
        let hash = sha256(token);
        format!("[{name}]\ntokens = [\"sha256:{hash}\"]\nroots = {roots}\n{more}\n")
    };
    fs::write(&file, tokens.iter().map(entry).collect::<Vec<_>>().concat()).unwrap();
    file
}

/// `printf %s TOKEN | sha256sum`
fn sha256(token: &str) -> String {
    let script = format!("printf %s '{token}' | sha256sum");
    let made = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(made.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

fn code(answer: &Value) -> String {
    let code = answer.pointer("/error/data/jackfield/code").and_then(Value::as_str);
    code.unwrap_or_else(|| panic!("no error of ours: {answer}")).to_owned()
}

/// The names of sessions in an answer, sorted.
fn names(answer: &Value) -> Vec<String> {
    let rows = answer["sessions"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    let mut names: Vec<_> =
        rows.iter().map(|it| it["sessionId"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}
