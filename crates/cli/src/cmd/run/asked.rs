//! What the agent asks while we drive: answered by the caller's rules, or by a person.

use super::driver::{Driver, Stopping};
use crate::{
    ask::{Ask, OnAsk, TITLE_CHARS_MAX, Verdict},
    out::{DIM, one_line, paint},
    report::Failure,
};
use jackfield_protocol::Frame;
use serde_json::Value;

impl Driver<'_> {
    pub(super) fn on_request(&mut self, frame: &Frame) -> Result<(), Failure> {
        let Some(ask) = Ask::parse(frame, &mut |call| self.transcript.tool(call)) else {
            return self.conn.refuse(frame);
        };
        if self.out.is_verbose() {
            let offers = ask.offers().join(", ");
            self.note(&paint(DIM, format!("ask   {} (of {offers})", ask.summary())));
        }
        match self.manner.rules.judge(&ask) {
            Verdict::Allow(answer) => {
                self.note(&format!("allowed: {}", ask.summary()));
                self.conn.answer(&ask.id, &answer)
            }
            Verdict::AskPerson => {
                self.transcript.finish()?;
                self.conn.heed_typing()?;
                self.conn.let_typing_wait(false);
                self.open.push_back(ask);
                if self.open.len() == 1 {
                    self.show_question();
                }
                Ok(())
            }
            Verdict::LeaveOpen => {
                let session = &self.goal.session;
                self.note(&format!(
                    "{} asks: {}; answer it with `jackfield answer {session} …` or `jackfield attach \
                     {session}`",
                    self.goal.agent,
                    ask.summary()
                ));
                Ok(())
            }
            Verdict::Deny(answer) => self.deny(&ask, &answer),
            Verdict::Fail(answer) => {
                self.deny(&ask, &answer)?;
                self.stop(Stopping::Denied)
            }
        }
    }

    fn deny(&mut self, ask: &Ask, answer: &Value) -> Result<(), Failure> {
        if let Some(turn) = &mut self.turn {
            turn.denied.push(format!("{} asked: {}", self.goal.agent, ask.summary()));
        }
        self.note(&format!("denied: {}", ask.summary()));
        self.conn.answer(&ask.id, answer)
    }

    /// A rule of the policy denied something: the run has not done all that it was asked to do.
    pub(super) fn report_denial(&mut self, what: &str, decision: &Value) {
        let why = decision["why"].as_str().unwrap_or_default();
        let what = one_line(what, TITLE_CHARS_MAX);
        self.note(&format!("denied by a rule: {what}: {why}"));
        if let Some(turn) = &mut self.turn {
            turn.denied.push(format!("{} asked: {what}: {why}", self.goal.agent));
            turn.denied_by_rule = true;
        }
    }

    /// A typed line: the answer to the question on the screen, or else what lines are here.
    pub(super) fn on_typed(&mut self, line: Result<String, Failure>) -> Result<(), Failure> {
        let line = match line {
            Ok(line) => line,
            Err(failure) if self.lines.is_some() => {
                self.tell(&failure);
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        let Some(ask) = self.open.front() else { return self.on_line(&line) };
        let Some(answer) = ask.typed(&line) else {
            self.show_question();
            return Ok(());
        };
        let id = ask.id.clone();
        self.open.pop_front();
        self.conn.answer(&id, &answer)?;
        self.show_question();
        Ok(())
    }

    /// Nobody can answer any more.
    pub(super) fn on_typed_end(&mut self) -> Result<(), Failure> {
        if let Some(lines) = &mut self.lines {
            lines.ended = true;
        }
        self.manner.rules.otherwise.get_or_insert(OnAsk::Deny);
        while let Some(ask) = self.open.pop_front() {
            self.deny(&ask, &ask.deny())?;
        }
        Ok(())
    }

    fn show_question(&mut self) {
        if let Some(ask) = self.open.front() {
            self.conn.show_question(&ask.question(&self.goal.agent));
        }
    }

    /// Another client answered, or the agent no longer wants to know.
    pub(super) fn withdraw(&mut self, request: &str) {
        let shown = self.open.front().is_some_and(|it| it.id == request);
        self.open.retain(|it| it.id != request);
        if shown {
            self.out.alert("");
            self.note("that ask is settled");
            self.show_question();
        }
    }
}
