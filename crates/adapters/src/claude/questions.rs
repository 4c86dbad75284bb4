//! Multiple-choice questions of the agent, which are sent to the client one after the other.

use crate::PermissionOption;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct QuestionSet {
    /// Each question with its answers.
    questions: Vec<(String, Vec<String>)>,
    chosen: Vec<String>,
}

impl QuestionSet {
    /// `None` if one of the questions has no answers to choose from.
    pub(super) fn new(input: &Value) -> Option<QuestionSet> {
        let questions: Vec<(String, Vec<String>)> =
            input["questions"].as_array()?.iter().map(parse_question).collect::<Option<_>>()?;
        (!questions.is_empty()).then_some(QuestionSet { questions, chosen: Vec::new() })
    }

    /// The text of the current question.
    pub(super) fn current_question(&self) -> String {
        self.current_entry().map(|(question, _)| question.clone()).unwrap_or_default()
    }

    pub(super) fn options(&self) -> Vec<PermissionOption> {
        let labels = self.current_entry().map(|(_, labels)| labels.as_slice()).unwrap_or_default();
        let numbered = labels.iter().enumerate().map(|(index, label)| PermissionOption {
            id: format!("answer-{index}"),
            name: label.clone(),
            kind: "allow_once",
        });
        let none = PermissionOption {
            id: "reject".to_owned(),
            name: "None of these".to_owned(),
            kind: "reject_once",
        };
        numbered.chain([none]).collect()
    }

    /// Records the answer to the current question. Returns whether it was the last question.
    pub(super) fn record_answer(&mut self, option: &str) -> bool {
        let index = option.strip_prefix("answer-").and_then(|it| it.parse::<usize>().ok());
        let label = index.and_then(|index| self.current_entry()?.1.get(index).cloned());
        self.chosen.push(label.unwrap_or_else(|| option.to_owned()));
        self.questions.len() <= self.chosen.len()
    }

    /// The answers by question, as the tool expects them.
    pub(super) fn answers(&self) -> Value {
        let questions = self.questions.iter().map(|(question, _)| question.clone());
        let answers: Map<String, Value> =
            questions.zip(self.chosen.iter().map(|label| json!(label))).collect();
        Value::Object(answers)
    }

    fn current_entry(&self) -> Option<&(String, Vec<String>)> {
        self.questions.get(self.chosen.len())
    }
}

fn parse_question(it: &Value) -> Option<(String, Vec<String>)> {
    let labels = it["options"].as_array()?.iter();
    let labels: Vec<String> =
        labels.filter_map(|it| it["label"].as_str().map(str::to_owned)).collect();
    (!labels.is_empty()).then_some((it["question"].as_str()?.to_owned(), labels))
}
