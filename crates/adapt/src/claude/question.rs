//! Questions of the agent with answers to choose from, put to the client one after the other.

use crate::AskOption;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct Questions {
    /// Each question with its answers.
    questions: Vec<(String, Vec<String>)>,
    chosen: Vec<String>,
}

impl Questions {
    /// None if there is a question that cannot be answered by a choice.
    pub(super) fn new(input: &Value) -> Option<Questions> {
        let questions: Vec<(String, Vec<String>)> =
            input["questions"].as_array()?.iter().map(question).collect::<Option<_>>()?;
        (!questions.is_empty()).then_some(Questions { questions, chosen: Vec::new() })
    }

    /// The question that is open.
    pub(super) fn current(&self) -> String {
        self.open().map(|(question, _)| question.clone()).unwrap_or_default()
    }

    pub(super) fn options(&self) -> Vec<AskOption> {
        let labels = self.open().map(|(_, labels)| labels.as_slice()).unwrap_or_default();
        let numbered = labels.iter().enumerate().map(|(at, label)| AskOption {
            id: format!("answer-{at}"),
            name: label.clone(),
            kind: "allow_once",
        });
        let none = AskOption {
            id: "reject".to_owned(),
            name: "None of these".to_owned(),
            kind: "reject_once",
        };
        numbered.chain([none]).collect()
    }

    /// Takes an answer. Returns whether it was the last one.
    pub(super) fn choose(&mut self, option: &str) -> bool {
        let at = option.strip_prefix("answer-").and_then(|at| at.parse::<usize>().ok());
        let label = at.and_then(|at| self.open()?.1.get(at).cloned());
        self.chosen.push(label.unwrap_or_else(|| option.to_owned()));
        self.questions.len() <= self.chosen.len()
    }

    /// By question, as the tool wants them.
    pub(super) fn answers(&self) -> Value {
        let questions = self.questions.iter().map(|(question, _)| question.clone());
        let answers: Map<String, Value> =
            questions.zip(self.chosen.iter().map(|label| json!(label))).collect();
        Value::Object(answers)
    }

    fn open(&self) -> Option<&(String, Vec<String>)> {
        self.questions.get(self.chosen.len())
    }
}

fn question(it: &Value) -> Option<(String, Vec<String>)> {
    let labels = it["options"].as_array()?.iter();
    let labels: Vec<String> =
        labels.filter_map(|it| it["label"].as_str().map(str::to_owned)).collect();
    (!labels.is_empty()).then_some((it["question"].as_str()?.to_owned(), labels))
}
