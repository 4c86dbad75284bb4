//! Uses the next launch variant of an agent that cannot be started, or its configured fallback. The answer, the log and
//! the list of sessions say which agent is used and why.

use crate::{Launch, Note, VariantChoice, context::HubContext};
use jackfield_events::{AgentName, RawJson};
use jackfield_protocol::{Fault, Frame, is_planted, redact};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A launch variant that failed, and the one to try next.
#[derive(Debug)]
pub(crate) struct NextVariant {
    pub(crate) failed: Arc<str>,
    pub(crate) next: Arc<str>,
}

/// An agent, or one launch variant of it, that could not be started.
#[derive(Debug, Clone)]
pub(crate) struct FailedAgent {
    agent: AgentName,
    /// The launch variant, if another one of the same agent was tried next.
    variant: Option<Arc<str>>,
    why: String,
}

/// As it is in the log and in `_meta.jackfield.fallback`.
pub(crate) fn to_json(fallen: &[FailedAgent]) -> Option<RawJson> {
    (!fallen.is_empty()).then(|| RawJson::trusted(rows(fallen).to_string()))
}

fn rows(fallen: &[FailedAgent]) -> Value {
    let row = |it: &FailedAgent| {
        let mut row = json!({ "agent": &*it.agent, "why": redact::text(&it.why) });
        if let Some(variant) = &it.variant {
            row["variant"] = json!(&**variant);
        }
        row
    };
    fallen.iter().map(row).collect()
}

/// Adds to a result which agent it is of, if that is not the requested one.
pub(crate) fn add_to_result(result: &str, agent: &str, fallen: &[FailedAgent]) -> Option<String> {
    with_facts(result, facts(agent, fallen, None))
}

/// What is reported about a session beside the answer of the agent, in `_meta.jackfield`.
fn facts(agent: &str, fallen: &[FailedAgent], unheard: Option<&str>) -> Map<String, Value> {
    let mut facts = Map::new();
    if !fallen.is_empty() {
        facts.extend([("agent".to_owned(), json!(agent)), ("fallback".to_owned(), rows(fallen))]);
    }
    facts.extend(unheard.map(|it| ("unheard".to_owned(), json!(it))));
    facts
}

fn with_facts(result: &str, facts: Map<String, Value>) -> Option<String> {
    if facts.is_empty() {
        return None;
    }
    let mut result: Map<String, Value> = serde_json::from_str(result).ok()?;
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    let hub_meta = &mut meta["jackfield"];
    if !hub_meta.is_object() {
        *hub_meta = json!({});
    }
    hub_meta.as_object_mut()?.extend(facts);
    Some(Value::from(result).to_string())
}

/// The last line of stderr that reports an error, or else the last line, says more than an exit status.
fn describe(fault: &Fault) -> String {
    let (Fault::AgentNotStarted { stderr, .. } | Fault::AgentGone { stderr, .. }) = fault else {
        return fault.to_string();
    };
    let mut lines = stderr.lines().map(str::trim).filter(|it| !it.is_empty());
    let error = lines.clone().rfind(|it| it.to_lowercase().contains("error"));
    match error.or_else(|| lines.next_back()) {
        Some(line) => format!("{fault}: {line}"),
        None => fault.to_string(),
    }
}

/// The fault of the last launch variant of an agent, with the reasons why the others are not used.
pub(crate) fn with_earlier_failures(fault: &Fault, fallen: &[FailedAgent]) -> Fault {
    let Fault::AgentNotStarted { agent, why, stderr } = fault else { return fault.clone() };
    let earlier = fallen.iter().filter(|it| **agent == *it.agent);
    let earlier = earlier.filter_map(|it| Some(format!("`{}`: {}", it.variant.as_ref()?, it.why)));
    let earlier: Vec<String> = earlier.collect();
    if earlier.is_empty() {
        return fault.clone();
    }
    let why = format!("{why}; launch variants that were tried before: {}", earlier.join("; "));
    Fault::AgentNotStarted { agent: agent.clone(), why, stderr: stderr.clone() }
}

impl HubContext {
    /// The next launch variant of this agent, else its fallback. Each is tried once.
    pub(crate) fn choose_fallback(
        &mut self,
        launch: &Launch,
        mut fallen: Vec<FailedAgent>,
        fault: &Fault,
        next_variant: Option<&NextVariant>,
    ) -> Option<(Launch, Vec<FailedAgent>)> {
        if self.is_stopping || matches!(fault, Fault::Quota { .. }) {
            return None; // Another would be one too many just as well.
        }
        let (agent, why) = (launch.name.clone(), describe(fault));
        if let Some(NextVariant { failed, next }) = next_variant {
            let instead = format!("its launch variant `{next}`");
            self.note(Note::FellBack { agent: agent.to_string(), instead, why: why.clone() });
            let variant = Some(Arc::clone(failed));
            fallen.push(FailedAgent { agent, variant, why });
            let variant = VariantChoice::From(Arc::clone(next));
            return Some((Launch { variant, ..launch.clone() }, fallen));
        }
        let pool = self.config.pools.get(&launch.name)?;
        let name = pool.fallback.clone()?;
        fallen.push(FailedAgent { agent, variant: None, why: why.clone() });
        if fallen.iter().any(|it| it.agent == name) {
            return None;
        }
        let other = self.config.agents.get(&name)?.clone();
        let (agent, instead) = (launch.name.to_string(), name.to_string());
        self.note(Note::FellBack { agent, instead, why });
        Some((Launch { cwd: launch.cwd.clone(), env: launch.env.clone(), ..other }, fallen))
    }
}

/// The answer to `session/new`.
pub(crate) fn opened_answer(
    frame: &Frame,
    request: &str,
    fallen: &[FailedAgent],
    agent: &str,
    unheard: Option<&str>,
) -> Frame {
    let hides = is_planted("fall-back-without-event");
    let facts = facts(agent, if hides { &[] } else { fallen }, unheard);
    let result = frame.result().and_then(|it| with_facts(it, facts));
    result.map_or_else(|| frame.with_id(request), |it| Frame::result_for(request, &it))
}
