//! `_jackfield/rename`: gives a session a name, by which commands find it, or removes the name.

use super::Sessions;
use crate::{ConnId, parts::HubParts, session_name::known_to};
use jackfield_events::{EventBody, RawJson, SettingChanged};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;

/// The length of a name. Longer ones do not fit into lists.
const NAME_CHARS_MAX: usize = 64;

impl Sessions {
    pub(crate) fn rename_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session = self.find_session(frame)?.id.clone();
        let params = frame.params_value();
        let name = match params.get("name") {
            Some(Value::String(name)) => Some(name.as_str()),
            Some(Value::Null) => None,
            _ => return Err(refuse("`name` must be text, or null to remove the name")),
        };
        if let Some(name) = name {
            check_name(name)?;
            let tenant = parts.clients.tenant_name(conn);
            let mut others = known_to(tenant, &self.by_id).filter(|(it, _)| **it != session);
            if let Some((other, _)) =
                others.find(|(_, it)| it.summary().name.as_deref() == Some(name))
            {
                return Err(refuse(format!("session `{other}` already has the name `{name}`")));
            }
        }
        parts.storage.require_working()?;
        let session = self.find_session(frame)?;
        if session.summary().name.as_deref() != name {
            let frame = RawJson::trusted(frame.bytes().clone());
            let changed = SettingChanged { frame, answer: RawJson::trusted("{}".to_owned()) };
            session.append_event(&mut parts.cx, EventBody::Configured(changed));
        }
        session.answer_after_log(parts, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }
}

/// A name can be typed in a shell and cannot be taken for an id or a flag.
fn check_name(name: &str) -> Result<(), Fault> {
    let is_valid = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.' | '/' | ' ');
    let is_first = |it: char| it.is_alphanumeric();
    if NAME_CHARS_MAX < name.chars().count() {
        return Err(refuse(format!("a name has at most {NAME_CHARS_MAX} characters")));
    }
    if !name.starts_with(is_first) || !name.chars().all(is_valid) || name.ends_with(' ') {
        return Err(refuse(
            "a name consists of letters, digits, `-`, `_`, `.`, `/` and spaces, and starts with a letter or digit",
        ));
    }
    if name.starts_with("s-") {
        return Err(refuse("a name does not start with `s-`, like the ids of sessions"));
    }
    Ok(())
}

fn refuse(why: impl Into<String>) -> Fault {
    Fault::InvalidParams { why: why.into() }
}
