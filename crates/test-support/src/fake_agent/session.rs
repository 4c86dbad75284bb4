//! Sessions and their history: in memory, and on disk if `--state` is given. Mode and options are lost at every restart,
//! as with real agents.

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

/// The modes of every session; the first is the initial one.
pub(crate) const MODES: &[&str] = &["ask", "auto", "plan"];

/// The options of every session: id, category, values. The first value is the initial one.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("model", "model", &["fake-fast", "fake-smart"]),
    ("effort", "thought_level", &["low", "high"]),
];

pub(crate) struct FakeSession {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) mcp_servers: Value,
    pub(crate) mode: String,
    /// A closed session must be loaded or resumed before it accepts a prompt.
    pub(crate) open: bool,
    pub(crate) history: Vec<HistoryEntry>,
    /// The texts of its prompts, oldest first.
    pub(crate) prompts: Vec<String>,
    options: BTreeMap<&'static str, String>,
    file: Option<File>,
}

/// An entry of the history, which is replayed on load.
#[derive(Debug, Clone)]
pub(crate) enum HistoryEntry {
    User(String),
    Update(Value),
    Burst { count: u64, size: usize },
    Huge(usize),
}

impl HistoryEntry {
    fn to_json(&self) -> Value {
        match self {
            HistoryEntry::User(text) => json!({"user": text}),
            HistoryEntry::Update(update) => json!({"update": update}),
            HistoryEntry::Burst { count, size } => json!({"burst": count, "size": size}),
            HistoryEntry::Huge(size) => json!({"huge": size}),
        }
    }

    fn from_json(line: &Value) -> Option<HistoryEntry> {
        let number = |key: &str| line[key].as_u64();
        let size = |key: &str| number(key).and_then(|it| usize::try_from(it).ok());
        if let Some(text) = line["user"].as_str() {
            return Some(HistoryEntry::User(text.to_owned()));
        }
        if line["update"].is_object() {
            return Some(HistoryEntry::Update(line["update"].clone()));
        }
        if let Some(count) = number("burst") {
            return Some(HistoryEntry::Burst { count, size: size("size")? });
        }
        size("huge").map(HistoryEntry::Huge)
    }
}

impl FakeSession {
    fn new(id: &str, cwd: &str, mcp_servers: Value) -> FakeSession {
        FakeSession {
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

    pub(crate) fn append_entry(&mut self, entry: HistoryEntry) {
        if let Some(file) = &mut self.file {
            let line = format!("{}\n", entry.to_json());
            file.write_all(line.as_bytes()).expect("the state directory takes a line");
        }
        self.restore_entry(entry);
    }

    fn restore_entry(&mut self, entry: HistoryEntry) {
        if let HistoryEntry::User(text) = &entry {
            self.prompts.push(text.clone());
        }
        self.history.push(entry);
    }

    pub(crate) fn option(&self, id: &str) -> &str {
        self.options.get(id).map_or("", String::as_str)
    }

    /// Returns false if the option or the value is unknown.
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

    /// The entry in `session/list`.
    pub(crate) fn info_json(&self) -> Value {
        let title = self.prompts.first().map_or(Value::Null, |it| json!(it));
        json!({"sessionId": self.id, "cwd": self.cwd, "title": title})
    }
}

/// All sessions of this process and of its state folder.
pub(crate) struct SessionStore {
    by_id: BTreeMap<String, FakeSession>,
    dir: Option<PathBuf>,
    created: u32,
}

impl SessionStore {
    pub(crate) fn new(dir: Option<PathBuf>) -> SessionStore {
        if let Some(dir) = &dir {
            fs::create_dir_all(dir).expect("the state directory can be made");
        }
        SessionStore { by_id: BTreeMap::new(), dir, created: 0 }
    }

    /// Creates a session with this id, or with one that is unique among all processes.
    pub(crate) fn create(&mut self, id: Option<&str>, cwd: &str, mcp: Value) -> &mut FakeSession {
        self.created += 1;
        let id = id.map_or_else(|| self.unique_id(), str::to_owned);
        let mut session = FakeSession::new(&id, cwd, mcp);
        if let Some(path) = self.path(&id) {
            let mut file = File::create(path).expect("the state directory takes a file");
            let head = format!("{}\n", json!({"cwd": cwd}));
            file.write_all(head.as_bytes()).expect("the state directory takes a line");
            session.file = Some(file);
        }
        self.by_id.insert(id.clone(), session);
        self.by_id.get_mut(&id).expect("it was just inserted")
    }

    /// A session that accepts prompts.
    pub(crate) fn open(&mut self, id: &str) -> Option<&mut FakeSession> {
        self.by_id.get_mut(id).filter(|it| it.open)
    }

    /// Opens a closed session, or one that another process stored.
    pub(crate) fn restore(&mut self, id: &str) -> Option<&mut FakeSession> {
        if !self.by_id.contains_key(id) {
            let session = self.read(id)?;
            self.by_id.insert(id.to_owned(), session);
        }
        let session = self.by_id.get_mut(id)?;
        session.open = true;
        Some(session)
    }

    /// All sessions by id.
    pub(crate) fn list(&mut self) -> Vec<&FakeSession> {
        let dir = self.dir.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
        let names: Vec<_> = dir.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        for id in names.iter().filter_map(|it| it.strip_suffix(".jsonl")) {
            if let (false, Some(mut session)) = (self.by_id.contains_key(id), self.read(id)) {
                session.open = false;
                self.by_id.insert(id.to_owned(), session);
            }
        }
        self.by_id.values().collect()
    }

    pub(crate) fn delete(&mut self, id: &str) -> bool {
        let on_disk = self.path(id).is_some_and(|it| fs::remove_file(it).is_ok());
        self.by_id.remove(id).is_some() || on_disk
    }

    fn read(&self, id: &str) -> Option<FakeSession> {
        let path = self.path(id)?;
        let text = fs::read_to_string(&path).ok()?;
        let mut lines = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let mut session = FakeSession::new(id, lines.next()?["cwd"].as_str()?, json!([]));
        lines
            .filter_map(|it| HistoryEntry::from_json(&it))
            .for_each(|it| session.restore_entry(it));
        session.file = File::options().append(true).open(path).ok();
        Some(session)
    }

    /// `None` without a state folder, and for ids that cannot be file names.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let plain = id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        self.dir.as_ref().filter(|_| plain).map(|it| it.join(format!("{id}.jsonl")))
    }

    fn unique_id(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("fake-{:x}-{:x}-{}", process::id(), now.as_micros(), self.created)
    }
}
