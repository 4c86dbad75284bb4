//! Many sessions through two gateways: what their clients receive, and what their agents ran.

use super::{Member, agent};
use jackfield_e2e::{Client, wait_for};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

/// The timeout of operations that take a moment on an idle machine.
pub(crate) const BOUND: Duration = Duration::from_mins(1);

/// The limit for sessions of a lost host to answer on another one: a lease of ten seconds, and the delays of a busy
/// machine.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(25);

/// The number of clients; every second one uses the second gateway.
const EARS: usize = 6;

pub(crate) struct Crowd {
    pub(crate) ears: Vec<Ear>,
    pub(crate) talks: Vec<Talk>,
    argv: Vec<String>,
    /// The state folder of all agents.
    memory: PathBuf,
}

/// A client and its received messages.
pub(crate) struct Ear {
    client: Client,
    answers: BTreeMap<u64, (Instant, Value)>,
    /// Received messages except for responses, by session.
    said: BTreeMap<String, Vec<Value>>,
}

/// A session and the client that opened it.
pub(crate) struct Talk {
    pub(crate) id: String,
    pub(crate) ear: usize,
}

/// A request: the client and the id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) ear: usize,
    id: u64,
}

impl Ear {
    pub(crate) fn new(gateway: &Member, argv: &[String]) -> Ear {
        let client = gateway.client(argv);
        let (answers, said) = Default::default();
        Ear { client, answers, said }
    }

    /// Reads what has arrived.
    fn listen(&mut self) {
        while let Some(message) = self.client.next(Duration::ZERO) {
            let now = Instant::now();
            if let (Some(id), None) = (message["id"].as_u64(), message.get("method")) {
                let twice = self.answers.insert(id, (now, message));
                assert!(twice.is_none(), "answered twice: {twice:?}");
            } else if let Some(session) = message["params"]["sessionId"].as_str() {
                self.said.entry(session.to_owned()).or_default().push(message);
            }
        }
    }

    /// A session from its beginning, as a client receives it that attaches: with every event of the log, or as it is shown
    /// to users.
    fn read(&mut self, session: &str, facts: bool) -> Vec<Value> {
        let before = self.client.heard.len();
        let params = json!({ "sessionId": session, "after": 0, "facts": facts });
        self.client.result("_jackfield/attach", &params);
        let of_it = |it: &&Value| it["params"]["sessionId"] == session && it["id"].is_null();
        self.client.heard[before..].iter().filter(of_it).cloned().collect()
    }
}

impl Crowd {
    /// Opens this many sessions, whose agents have these additional flags.
    pub(crate) fn open(gateways: &[Member; 2], count: usize, flags: &[&str]) -> Crowd {
        let home = &gateways[0].home;
        let memory = home.path().join("memory");
        let mut argv = agent(home, &memory);
        argv.extend(flags.iter().map(|it| (*it).to_owned()));
        let mut ears: Vec<Ear> = (0..EARS).map(|it| Ear::new(&gateways[it % 2], &argv)).collect();
        let talks = (0..count).map(|number| {
            let ear = number % EARS;
            let id = ears[ear].client.open(home.path());
            Talk { id, ear }
        });
        let talks = talks.collect();
        Crowd { ears, talks, argv, memory }
    }

    /// Sends a prompt, through the gateway of the session's client or through the other one.
    pub(crate) fn say(&mut self, talk: usize, text: &str, elsewhere: bool) -> Asked {
        let Talk { id, ear } = &self.talks[talk];
        let ear = if elsewhere { ear ^ 1 } else { *ear };
        Asked { ear, id: self.ears[ear].client.send_prompt(id, text) }
    }

    /// The same in every session.
    pub(crate) fn say_all(
        &mut self,
        text: impl Fn(usize) -> String,
        elsewhere: bool,
    ) -> Vec<Asked> {
        (0..self.talks.len()).map(|it| self.say(it, &text(it), elsewhere)).collect()
    }

    /// Reads until the condition holds.
    pub(crate) fn wait(
        &mut self,
        what: &str,
        bound: Duration,
        mut done: impl FnMut(&Crowd) -> bool,
    ) {
        wait_for(what, bound, || {
            self.listen();
            done(self).then_some(())
        });
    }

    /// Reads what has arrived.
    pub(crate) fn listen(&mut self) {
        self.ears.iter_mut().for_each(Ear::listen);
    }

    pub(crate) fn answer(&self, asked: Asked) -> Option<&(Instant, Value)> {
        self.ears[asked.ear].answers.get(&asked.id)
    }

    /// Waits for all responses; returns their times and contents.
    pub(crate) fn answers(&mut self, asked: &[Asked], bound: Duration) -> Vec<(Instant, Value)> {
        let what = format!("{} answers", asked.len());
        self.wait(&what, bound, |it| asked.iter().all(|asked| it.answer(*asked).is_some()));
        asked.iter().map(|it| self.answer(*it).expect("waited for").clone()).collect()
    }

    /// Waits until the client of each session has received this text in it.
    pub(crate) fn wait_until_heard(&mut self, text: &str) {
        let mut left: Vec<usize> = (0..self.talks.len()).collect();
        self.wait(&format!("`{text}` in every session"), BOUND, |it| {
            left.retain(|talk| !it.heard(*talk).iter().any(|it| it.to_string().contains(text)));
            left.is_empty()
        });
    }

    /// The messages that the client of a session has received in it.
    pub(crate) fn heard(&self, talk: usize) -> &[Value] {
        let Talk { id, ear } = &self.talks[talk];
        self.ears[*ear].said.get(id).map_or(&[], Vec::as_slice)
    }

    /// The owner of each session.
    fn owners(&mut self) -> Vec<String> {
        // Messages that arrive meanwhile are read, too.
        let asked =
            Asked { ear: 0, id: self.ears[0].client.send("_jackfield/sessions", &json!({})) };
        let ps = self.answers(&[asked], BOUND).remove(0).1["result"].take();
        let host = |talk: &Talk| {
            let rows = ps["sessions"].as_array().expect("a list").iter();
            let row = rows.into_iter().find(|it| it["sessionId"] == *talk.id);
            let row = row.unwrap_or_else(|| panic!("{} is not listed: {ps}", talk.id));
            row["host"].as_str().unwrap_or_else(|| panic!("it has no owner: {row}")).to_owned()
        };
        self.talks.iter().map(host).collect()
    }

    /// The index of the host with the most sessions, and these sessions.
    pub(crate) fn busiest(&mut self, hosts: &[&str]) -> (usize, Vec<usize>) {
        let owners = self.owners();
        let of = |host: &str| (0..owners.len()).filter(|it| owners[*it] == host).collect();
        let shares = hosts.iter().map(|it| of(it)).enumerate();
        shares.max_by_key(|(_, it): &(usize, Vec<usize>)| it.len()).expect("there are hosts")
    }

    /// All prompts that the agents received, sorted.
    pub(crate) fn ran(&self) -> Vec<String> {
        let files = fs::read_dir(&self.memory).expect("agents keep their sessions there");
        let mut ran = Vec::new();
        for file in files.flatten() {
            let text = fs::read_to_string(file.path()).expect("a file of an agent");
            let lines = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
            ran.extend(lines.filter_map(|it| it["user"].as_str().map(str::to_owned)));
        }
        ran.sort();
        ran
    }

    /// Reads every session from its beginning through both gateways: the results are equal, have no gap, and equal what
    /// the client of the session received or receives soon. Returns the events of each.
    pub(crate) fn transcripts(&mut self, gateways: &[Member; 2]) -> Vec<Vec<Value>> {
        let mut ears = gateways.each_ref().map(|it| Ear::new(it, &self.argv));
        let mut transcripts = Vec::new();
        for talk in 0..self.talks.len() {
            let id = self.talks[talk].id.clone();
            let [near, far] = ears.each_mut().map(|it| it.read(&id, false));
            assert_eq!(near, far, "{id} differs between gateways");
            let told = updates(&near);
            self.wait(&format!("all updates of {id}"), BOUND, |it| {
                told.len() <= updates(it.heard(talk)).len()
            });
            assert_eq!(updates(self.heard(talk)), told, "{id} was delivered differently");
            let facts = ears[0].read(&id, true);
            let seqs = facts.iter().map(|it| it["params"]["seq"].as_u64());
            assert!(seqs.eq((1..=facts.len() as u64).map(Some)), "{id} has a gap: {facts:?}");
            transcripts.push(facts);
        }
        transcripts
    }
}

/// The agent's updates with their positions.
fn updates(said: &[Value]) -> Vec<&Value> {
    let by_agent = |it: &&Value| {
        let kind = &it["params"]["update"]["sessionUpdate"];
        it["method"] == "session/update" && *kind != "user_message_chunk"
    };
    said.iter().filter(by_agent).map(|it| &it["params"]).collect()
}

/// The number of events of this kind.
pub(crate) fn facts(transcript: &[Value], name: &str) -> usize {
    transcript.iter().filter(|it| it["params"]["is"] == name).count()
}

/// Whether a turn ended normally.
pub(crate) fn ended_well((_, answer): &(Instant, Value)) -> bool {
    answer["result"]["stopReason"] == "end_turn"
}

/// The number of sessions; a manual run may use more.
pub(crate) fn sessions() -> usize {
    std::env::var("FLEET_SESSIONS").map_or(12, |it| it.parse().expect("a number of sessions"))
}
