//! Calls while their pieces arrive.

use super::{Call, Delta};
use serde_json::Value;

/// The calls of one answer, in the order in which they began.
#[derive(Debug)]
pub(super) struct Drafts {
    drafts: Vec<Draft>,
    /// Ids that a server forgot begin with it.
    mark: String,
}

#[derive(Debug, Default)]
struct Draft {
    /// The server's number for it, if it gave one.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Somebody heard of it, and its id and name are settled.
    told: bool,
}

impl Drafts {
    pub(super) fn new(mark: &str) -> Drafts {
        Drafts { drafts: Vec::new(), mark: mark.to_owned() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// One entry of `tool_calls`; a `function_call` of old is one without number and id.
    pub(super) fn push(&mut self, entry: &Value, heard: &mut dyn FnMut(Delta<'_>)) {
        let id = entry["id"].as_str().unwrap_or_default();
        let function = if entry["function"].is_object() { &entry["function"] } else { entry };
        let name = function["name"].as_str().unwrap_or_default();
        let at = self.place(entry["index"].as_u64(), id, name);
        let draft = &mut self.drafts[at];
        if draft.id.is_empty() && !draft.told {
            id.clone_into(&mut draft.id);
        }
        // A name comes whole, in pieces, or whole with each piece of the arguments.
        if draft.name != name && !draft.told {
            draft.name.push_str(name);
        }
        let piece = match &function["arguments"] {
            Value::String(piece) => piece.clone(),
            // An empty object announces that pieces will come.
            Value::Object(object) if object.is_empty() => String::new(),
            Value::Null => String::new(),
            whole => whole.to_string(),
        };
        if !piece.is_empty() {
            self.tell(at, &piece, heard);
        }
    }

    /// All pieces have come: those that nobody heard of are told.
    pub(super) fn finish(mut self, heard: &mut dyn FnMut(Delta<'_>)) -> Vec<Call> {
        for at in 0..self.drafts.len() {
            if !self.drafts[at].told {
                self.tell(at, "", heard);
            }
        }
        let call = |it: Draft| {
            // No server takes a call back that has no arguments at all.
            let arguments = if it.arguments.trim().is_empty() { "{}" } else { &it.arguments };
            Call { id: it.id, name: it.name, arguments: arguments.to_owned() }
        };
        self.drafts.into_iter().map(call).collect()
    }

    /// Which draft an entry belongs to; a new one if to none.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        // Some servers number every call 0, and only id and name tell the next one.
        let is_next = |it: &Draft| !name.is_empty() && !it.name.is_empty() && it.id != id;
        let last = self.drafts.len().checked_sub(1);
        let found = match index {
            Some(_) => self
                .drafts
                .iter()
                .rposition(|it| it.index == index)
                .filter(|at| id.is_empty() || !is_next(&self.drafts[*at])),
            None if !id.is_empty() => {
                let known = self.drafts.iter().rposition(|it| it.id == id);
                known.or(last.filter(|at| name.is_empty() && self.drafts[*at].id.is_empty()))
            }
            None => last.filter(|at| {
                let last = &self.drafts[*at];
                name.is_empty() || last.arguments.is_empty() && last.id.is_empty()
            }),
        };
        found.unwrap_or_else(|| {
            self.drafts.push(Draft { index, ..Draft::default() });
            self.drafts.len() - 1
        })
    }

    fn tell(&mut self, at: usize, piece: &str, heard: &mut dyn FnMut(Delta<'_>)) {
        let id = &self.drafts[at].id;
        let is_taken = self.drafts[..at].iter().any(|it| it.id == *id);
        if id.is_empty() || is_taken {
            self.drafts[at].id = format!("{}_{at}", self.mark);
        }
        let draft = &mut self.drafts[at];
        draft.told = true;
        draft.arguments.push_str(piece);
        heard(Delta::Call { index: at, id: &draft.id, name: &draft.name, piece });
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Delta, Drafts};
    use serde_json::{Value, json};

    /// What comes of these entries, and the pieces that were heard.
    fn drafted(entries: &[Value]) -> (Vec<Call>, Vec<String>) {
        let (mut drafts, mut pieces) = (Drafts::new("call_x"), Vec::new());
        let mut heard = |delta: Delta<'_>| {
            let Delta::Call { index, id, name, piece } = delta else { panic!("{delta:?}") };
            pieces.push(format!("{index} {id} {name} {piece}"));
        };
        for entry in entries {
            drafts.push(entry, &mut heard);
        }
        let calls = drafts.finish(&mut heard);
        (calls, pieces)
    }

    fn calls(entries: &[Value]) -> Vec<[String; 3]> {
        drafted(entries).0.into_iter().map(|it| [it.id, it.name, it.arguments]).collect()
    }

    fn entry(index: u64, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn pieces_are_joined_by_their_number() {
        let piece =
            |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
        let entries = [
            entry(0, "a", "read", ""),
            piece(0, "{\"p\":"),
            entry(1, "b", "list", ""),
            piece(1, "{}"),
            piece(0, "1}"),
        ];
        let (calls, heard) = drafted(&entries);
        let call = |id: &str, name: &str, arguments: &str| {
            let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
            Call { id, name, arguments }
        };
        assert_eq!(calls, [call("a", "read", "{\"p\":1}"), call("b", "list", "{}")]);
        assert_eq!(heard, ["0 a read {\"p\":", "1 b list {}", "0 a read 1}"]);
    }

    #[test]
    fn a_call_without_arguments_is_told_at_the_end() {
        let (calls, heard) = drafted(&[entry(0, "a", "list", "")]);
        assert_eq!((calls[0].arguments.as_str(), heard), ("{}", vec!["0 a list ".to_owned()]));
    }

    #[test]
    fn whole_calls_under_one_number_are_several() {
        let entries = [entry(0, "a", "read", "{}"), entry(0, "b", "read", "{\"x\":1}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"], ["b", "read", "{\"x\":1}"]]);
    }

    #[test]
    fn an_id_and_a_name_that_come_with_every_piece_are_one_call() {
        let entries = [entry(0, "a", "read", "{"), entry(0, "a", "read", "}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
        let entries = [entry(0, "a", "read", "{"), entry(0, "other", "", "}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
    }

    #[test]
    fn a_name_in_pieces_is_one_name() {
        let entries = [entry(0, "a", "re", ""), entry(0, "", "ad", ""), entry(0, "", "", "{}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"]]);
    }

    #[test]
    fn what_has_no_number_is_told_apart_by_ids_or_names() {
        let bare = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
        let entries = [bare("a", "read", "{"), bare("", "", "}"), bare("b", "list", "{}")];
        assert_eq!(calls(&entries), [["a", "read", "{}"], ["b", "list", "{}"]]);
        let entries = [bare("", "read", "{}"), bare("", "list", "{}")];
        assert_eq!(calls(&entries), [["call_x_0", "read", "{}"], ["call_x_1", "list", "{}"]]);
    }

    #[test]
    fn an_id_that_is_missing_or_taken_is_made() {
        let entries =
            [entry(0, "", "read", "{}"), entry(1, "same", "a", "{}"), entry(2, "same", "b", "{}")];
        let ids: Vec<String> = calls(&entries).into_iter().map(|[id, ..]| id).collect();
        assert_eq!(ids, ["call_x_0", "same", "call_x_2"]);
    }

    #[test]
    fn arguments_may_be_an_object_and_the_call_one_of_old() {
        let object =
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": {"p": 1}}});
        assert_eq!(calls(&[object]), [["a", "read", "{\"p\":1}"]]);
        let old = [json!({"name": "read", "arguments": ""}), json!({"arguments": "{\"p\":1}"})];
        assert_eq!(calls(&old), [["call_x_0", "read", "{\"p\":1}"]]);
    }
}
