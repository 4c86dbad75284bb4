//! Sessions and their history: in memory, and on disk if a place was named. Mode and options are
//! forgotten at every restart, as real agents do.

use std::{
    collections::BTreeMap,
    fs,
    fs::File,
    io::Write as _,
    path::PathBuf,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

/// Modes every session offers; the first is the one it starts in.
pub(crate) const MODES: &[&str] = &["ask", "auto", "plan"];

/// Options every session offers: id, category, values; the first value is the one it starts with.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("model", "model", &["fake-fast", "fake-smart"]),
    ("effort", "thought_level", &["low", "high"]),
];

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) mcp_servers: Value,
    pub(crate) mode: String,
    /// Closed sessions are known, but must be loaded or resumed before they take a prompt.
    pub(crate) open: bool,
    pub(crate) history: Vec<Entry>,
    /// The texts of its prompts, oldest first.
    pub(crate) prompts: Vec<String>,
    options: BTreeMap<&'static str, String>,
    file: Option<File>,
}

/// What a session remembers, and replays when it is loaded.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    User(String),
    Update(Value),
    Burst { count: u64, size: usize },
    Huge(usize),
}

impl Entry {
    fn to_json(&self) -> Value {
        match self {
            Entry::User(text) => json!({"user": text}),
            Entry::Update(update) => json!({"update": update}),
            Entry::Burst { count, size } => json!({"burst": count, "size": size}),
            Entry::Huge(size) => json!({"huge": size}),
        }
    }

    fn from_json(line: &Value) -> Option<Entry> {
        let number = |key: &str| line[key].as_u64();
        let size = |key: &str| number(key).and_then(|it| usize::try_from(it).ok());
        if let Some(text) = line["user"].as_str() {
            return Some(Entry::User(text.to_owned()));
        }
        if line["update"].is_object() {
            return Some(Entry::Update(line["update"].clone()));
        }
        if let Some(count) = number("burst") {
            return Some(Entry::Burst { count, size: size("size")? });
        }
        size("huge").map(Entry::Huge)
    }
}

impl Session {
    fn new(id: &str, cwd: &str, mcp_servers: Value) -> Session {
        Session {
            id: id.to_owned(),
            cwd: cwd.to_owned(),
            mcp_servers,
            mode: MODES[0].to_owned(),
            open: true,
            history: Vec::new(),
            prompts: Vec::new(),
            options: OPTIONS.iter().map(|(id, _, values)| (*id, values[0].to_owned())).collect(),
            file: None,
        }
    }

    pub(crate) fn remember(&mut self, entry: Entry) {
        if let Some(file) = &mut self.file {
            let line = format!("{}\n", entry.to_json());
            file.write_all(line.as_bytes()).expect("the state directory takes a line");
        }
        self.recall(entry);
    }

    fn recall(&mut self, entry: Entry) {
        if let Entry::User(text) = &entry {
            self.prompts.push(text.clone());
        }
        self.history.push(entry);
    }

    pub(crate) fn option(&self, id: &str) -> &str {
        self.options.get(id).map_or("", String::as_str)
    }

    /// Whether there is such an option with such a value.
    pub(crate) fn set_option(&mut self, id: &str, value: &str) -> bool {
        let known = OPTIONS.iter().find(|(it, _, values)| *it == id && values.contains(&value));
        known.is_some_and(|(id, ..)| self.options.insert(id, value.to_owned()).is_some())
    }

    pub(crate) fn set_mode(&mut self, mode: &str) -> bool {
        let known = MODES.contains(&mode);
        if known {
            mode.clone_into(&mut self.mode);
        }
        known
    }

    pub(crate) fn modes_json(&self) -> Value {
        let modes: Vec<_> = MODES.iter().map(|it| json!({"id": it, "name": it})).collect();
        json!({"currentModeId": self.mode, "availableModes": modes})
    }

    pub(crate) fn options_json(&self) -> Value {
        let one = |(id, category, values): &(&str, &str, &[&str])| {
            let values: Vec<_> = values.iter().map(|it| json!({"value": it, "name": it})).collect();
            json!({
                "id": id, "name": id, "category": category, "type": "select",
                "currentValue": self.option(id), "options": values,
            })
        };
        OPTIONS.iter().map(one).collect()
    }

    /// How `session/list` shows it.
    pub(crate) fn info_json(&self) -> Value {
        let title = self.prompts.first().map_or(Value::Null, |it| json!(it));
        json!({"sessionId": self.id, "cwd": self.cwd, "title": title})
    }
}

/// All sessions this process knows or could find.
pub(crate) struct Sessions {
    known: BTreeMap<String, Session>,
    dir: Option<PathBuf>,
    made: u32,
}

impl Sessions {
    pub(crate) fn new(dir: Option<PathBuf>) -> Sessions {
        if let Some(dir) = &dir {
            fs::create_dir_all(dir).expect("the state directory can be made");
        }
        Sessions { known: BTreeMap::new(), dir, made: 0 }
    }

    /// A new session, under this id or one that no other process gives.
    pub(crate) fn create(&mut self, id: Option<&str>, cwd: &str, mcp: Value) -> &mut Session {
        self.made += 1;
        let id = id.map_or_else(|| self.unique_id(), str::to_owned);
        let mut session = Session::new(&id, cwd, mcp);
        if let Some(path) = self.path(&id) {
            let mut file = File::create(path).expect("the state directory takes a file");
            let head = format!("{}\n", json!({"cwd": cwd}));
            file.write_all(head.as_bytes()).expect("the state directory takes a line");
            session.file = Some(file);
        }
        self.known.insert(id.clone(), session);
        self.known.get_mut(&id).expect("it was just put there")
    }

    /// A session that takes prompts.
    pub(crate) fn open(&mut self, id: &str) -> Option<&mut Session> {
        self.known.get_mut(id).filter(|it| it.open)
    }

    /// A session that was closed, or that another process left on disk, made open again.
    pub(crate) fn restore(&mut self, id: &str) -> Option<&mut Session> {
        if !self.known.contains_key(id) {
            let session = self.read(id)?;
            self.known.insert(id.to_owned(), session);
        }
        let session = self.known.get_mut(id)?;
        session.open = true;
        Some(session)
    }

    /// Everything there is, by id.
    pub(crate) fn list(&mut self) -> Vec<&Session> {
        let dir = self.dir.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
        let names: Vec<_> = dir.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        for id in names.iter().filter_map(|it| it.strip_suffix(".jsonl")) {
            if let (false, Some(mut session)) = (self.known.contains_key(id), self.read(id)) {
                session.open = false;
                self.known.insert(id.to_owned(), session);
            }
        }
        self.known.values().collect()
    }

    pub(crate) fn delete(&mut self, id: &str) -> bool {
        let on_disk = self.path(id).is_some_and(|it| fs::remove_file(it).is_ok());
        self.known.remove(id).is_some() || on_disk
    }

    fn read(&self, id: &str) -> Option<Session> {
        let path = self.path(id)?;
        let text = fs::read_to_string(&path).ok()?;
        let mut lines = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let mut session = Session::new(id, lines.next()?["cwd"].as_str()?, json!([]));
        lines.filter_map(|it| Entry::from_json(&it)).for_each(|it| session.recall(it));
        session.file = File::options().append(true).open(path).ok();
        Some(session)
    }

    /// `None` without a state directory, and for ids that are no file name of ours.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let plain = id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        self.dir.as_ref().filter(|_| plain).map(|it| it.join(format!("{id}.jsonl")))
    }

    fn unique_id(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("fake-{:x}-{:x}-{}", process::id(), now.as_micros(), self.made)
    }
}
