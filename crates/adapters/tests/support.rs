//! Session stores and adapters for tests.

use jackfield_adapters::{Adapter, AdapterSettings, SessionRecord, SessionStore, find_dialect};
use jackfield_catalog::{Catalog, LaunchVariant};
use std::collections::BTreeMap;

/// Stores nothing. Every session has the id `s`.
pub(crate) struct EmptyStore;

impl SessionStore for EmptyStore {
    fn create_session_id(&mut self) -> String {
        "s".to_owned()
    }

    fn save_record(&mut self, _session: &str, _record: &SessionRecord) {}

    fn load_record(&mut self, _session: &str) -> Option<SessionRecord> {
        None
    }
}

/// Stores records in memory. The sessions have the ids `session-1`, `session-2` and so on.
#[derive(Default)]
pub(crate) struct MemoryStore {
    pub(crate) records: BTreeMap<String, SessionRecord>,
}

impl SessionStore for MemoryStore {
    fn create_session_id(&mut self) -> String {
        format!("session-{}", self.records.len() + 1)
    }

    fn save_record(&mut self, session: &str, record: &SessionRecord) {
        self.records.insert(session.to_owned(), record.clone());
    }

    fn load_record(&mut self, session: &str) -> Option<SessionRecord> {
        self.records.get(session).cloned()
    }
}

/// The adapter of an agent, or of any agent with the dialect if this one does not have it.
pub(crate) fn new_adapter(agent: &str, dialect: &str) -> Adapter {
    let catalog = Catalog::builtin();
    let has_dialect = |it: &&LaunchVariant| it.dialect.as_deref() == Some(dialect);
    let spec = catalog
        .get(agent)
        .filter(|spec| spec.launch.iter().any(|it| has_dialect(&it)))
        .or_else(|| catalog.iter().find(|spec| spec.launch.iter().any(|it| has_dialect(&it))))
        .unwrap_or_else(|| panic!("no built-in agent has the dialect {dialect}"))
        .clone();
    let variant = spec.launch.iter().find(has_dialect).unwrap().clone();
    let settings = AdapterSettings {
        flags: vec![true; variant.flags.len()],
        models: Vec::new(),
        program_version: Some("0.1.0".to_owned()),
        scratch: "/scratch".to_owned(),
        is_sandboxed: false,
        variant,
        spec,
    };
    let factory = find_dialect(dialect).unwrap_or_else(|| panic!("unknown dialect {dialect}"));
    Adapter::new(settings, factory)
}
