//! Assembles tool calls from the fragments of a stream.

use super::{ModelToolCall, ResponseDelta};
use serde_json::Value;

/// The calls of one response, in the order in which they began.
#[derive(Debug)]
pub(super) struct ToolCallAssembler {
    calls: Vec<PartialToolCall>,
    /// The prefix of ids for calls to which the server gave none.
    id_prefix: String,
}

#[derive(Debug, Default)]
struct PartialToolCall {
    /// The server's number for the call, if it sent one.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Whether a delta was emitted. The id and the name are final from then on.
    is_announced: bool,
}

impl ToolCallAssembler {
    pub(super) fn new(id_prefix: &str) -> ToolCallAssembler {
        ToolCallAssembler { calls: Vec::new(), id_prefix: id_prefix.to_owned() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds one entry of `tool_calls`, or a legacy `function_call`, which has no index and no id.
    pub(super) fn push(&mut self, entry: &Value, on_delta: &mut dyn FnMut(ResponseDelta<'_>)) {
        let id = entry["id"].as_str().unwrap_or_default();
        let function = if entry["function"].is_object() { &entry["function"] } else { entry };
        let name = function["name"].as_str().unwrap_or_default();
        let at = self.find_or_add(entry["index"].as_u64(), id, name);
        let call = &mut self.calls[at];
        if call.id.is_empty() && !call.is_announced {
            id.clone_into(&mut call.id);
        }
        // A name comes whole, in fragments, or whole with each fragment of the arguments.
        if call.name != name && !call.is_announced {
            call.name.push_str(name);
        }
        let fragment = match &function["arguments"] {
            Value::String(fragment) => fragment.clone(),
            // An empty object announces that fragments will follow.
            Value::Object(object) if object.is_empty() => String::new(),
            Value::Null => String::new(),
            whole => whole.to_string(),
        };
        if !fragment.is_empty() {
            self.append_arguments(at, &fragment, on_delta);
        }
    }

    /// Ends the response. Emits a delta for each call that was not announced yet.
    pub(super) fn finish(
        mut self,
        on_delta: &mut dyn FnMut(ResponseDelta<'_>),
    ) -> Vec<ModelToolCall> {
        for at in 0..self.calls.len() {
            if !self.calls[at].is_announced {
                self.append_arguments(at, "", on_delta);
            }
        }
        let complete = |it: PartialToolCall| {
            // Servers reject a history that has a call without arguments.
            let arguments = if it.arguments.trim().is_empty() { "{}" } else { &it.arguments };
            ModelToolCall { id: it.id, name: it.name, arguments: arguments.to_owned() }
        };
        self.calls.into_iter().map(complete).collect()
    }

    /// Returns the position of the call that an entry belongs to. Adds a new call if there is none.
    fn find_or_add(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        // Some servers give every call the index 0; then only the id and the name tell calls apart.
        let is_other =
            |it: &PartialToolCall| !name.is_empty() && !it.name.is_empty() && it.id != id;
        let last = self.calls.len().checked_sub(1);
        let found = match index {
            Some(_) => self
                .calls
                .iter()
                .rposition(|it| it.index == index)
                .filter(|at| id.is_empty() || !is_other(&self.calls[*at])),
            None if !id.is_empty() => {
                let known = self.calls.iter().rposition(|it| it.id == id);
                known.or(last.filter(|at| name.is_empty() && self.calls[*at].id.is_empty()))
            }
            None => last.filter(|at| {
                let last = &self.calls[*at];
                name.is_empty() || last.arguments.is_empty() && last.id.is_empty()
            }),
        };
        found.unwrap_or_else(|| {
            self.calls.push(PartialToolCall { index, ..PartialToolCall::default() });
            self.calls.len() - 1
        })
    }

    /// Appends to the arguments and emits a delta. Replaces an id that is missing or already used.
    fn append_arguments(
        &mut self,
        at: usize,
        fragment: &str,
        on_delta: &mut dyn FnMut(ResponseDelta<'_>),
    ) {
        let id = &self.calls[at].id;
        let is_duplicate = self.calls[..at].iter().any(|it| it.id == *id);
        if id.is_empty() || is_duplicate {
            self.calls[at].id = format!("{}_{at}", self.id_prefix);
        }
        let call = &mut self.calls[at];
        call.is_announced = true;
        call.arguments.push_str(fragment);
        on_delta(ResponseDelta::ToolCall { index: at, id: &call.id, name: &call.name, fragment });
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelToolCall, ResponseDelta, ToolCallAssembler};
    use serde_json::{Value, json};

    /// Returns the calls of these entries, and the emitted deltas.
    fn assemble(entries: &[Value]) -> (Vec<ModelToolCall>, Vec<String>) {
        let (mut assembler, mut deltas) = (ToolCallAssembler::new("call_x"), Vec::new());
        let mut on_delta = |delta: ResponseDelta<'_>| {
            let ResponseDelta::ToolCall { index, id, name, fragment } = delta else {
                panic!("{delta:?}")
            };
            deltas.push(format!("{index} {id} {name} {fragment}"));
        };
        for entry in entries {
            assembler.push(entry, &mut on_delta);
        }
        let calls = assembler.finish(&mut on_delta);
        (calls, deltas)
    }

    fn calls(entries: &[Value]) -> Vec<[String; 3]> {
        assemble(entries).0.into_iter().map(|it| [it.id, it.name, it.arguments]).collect()
    }

    fn entry(index: u64, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn fragments_are_joined_by_index() {
        let fragment =
            |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
        let entries = [
            entry(0, "a", "read", ""),
            fragment(0, "{\"p\":"),
            entry(1, "b", "list", ""),
            fragment(1, "{}"),
            fragment(0, "1}"),
        ];
        let (calls, deltas) = assemble(&entries);
        let call = |id: &str, name: &str, arguments: &str| {
            let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
            ModelToolCall { id, name, arguments }
        };
        assert_eq!(calls, [call("a", "read", "{\"p\":1}"), call("b", "list", "{}")]);
        assert_eq!(deltas, ["0 a read {\"p\":", "1 b list {}", "0 a read 1}"]);
    }

    #[test]
    fn call_without_arguments_is_announced_at_the_end() {
        let (calls, deltas) = assemble(&[entry(0, "a", "list", "")]);
        assert_eq!((calls[0].arguments.as_str(), deltas), ("{}", vec!["0 a list ".to_owned()]));
    }

    #[test]
    fn complete_calls_with_the_same_index_are_separate_calls() {
        let entries = [entry(0, "a", "read", "{}"), entry(0, "b", "read", "{\"x\":1}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"], ["b", "read", "{\"x\":1}"]]);
    }

    #[test]
    fn id_and_name_may_repeat_with_each_fragment() {
        let entries = [entry(0, "a", "read", "{"), entry(0, "a", "read", "}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
        let entries = [entry(0, "a", "read", "{"), entry(0, "other", "", "}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
    }

    #[test]
    fn name_fragments_are_joined() {
        let entries = [entry(0, "a", "re", ""), entry(0, "", "ad", ""), entry(0, "", "", "{}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
    }

    #[test]
    fn calls_without_index_are_distinguished_by_id_or_name() {
        let bare = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
        let entries = [bare("a", "read", "{"), bare("", "", "}"), bare("b", "list", "{}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"], ["b", "list", "{}"]]);
        let entries = [bare("", "read", "{}"), bare("", "list", "{}")];
        assert_eq!(calls(&entries), [["call_x_0", "read", "{}"], ["call_x_1", "list", "{}"]]);
    }

    #[test]
    fn missing_or_duplicate_id_is_replaced() {
        let entries =
            [entry(0, "", "read", "{}"), entry(1, "same", "a", "{}"), entry(2, "same", "b", "{}")];
        let ids: Vec<String> = calls(&entries).into_iter().map(|[id, ..]| id).collect();
        assert_eq!(ids, ["call_x_0", "same", "call_x_2"]);
    }

    #[test]
    fn object_arguments_and_legacy_function_calls_are_accepted() {
        let object =
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": {"p": 1}}});
        assert_eq!(calls(&[object]), [["a", "read", "{\"p\":1}"]]);
        let old = [json!({"name": "read", "arguments": ""}), json!({"arguments": "{\"p\":1}"})];
        assert_eq!(calls(&old), [["call_x_0", "read", "{\"p\":1}"]]);
    }
}
