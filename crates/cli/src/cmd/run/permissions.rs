//! Answers the agent's requests during a turn: by the flags, or by the user.

use super::driver::{CancelCause, TurnDriver};
use crate::{
    out::{DIM, paint},
    plain_text::to_one_line,
    report::CommandError,
    requests::{PermissionPrompt, RequestAction, TITLE_CHARS_MAX, UnapprovedAction},
};
use jackfield_protocol::Frame;
use serde_json::Value;

impl TurnDriver<'_> {
    pub(super) fn on_request(&mut self, frame: &Frame) -> Result<(), CommandError> {
        let Some(request) =
            PermissionPrompt::parse(frame, &mut |call| self.transcript.find_tool(call))
        else {
            return self.conn.refuse_request(frame);
        };
        if self.output.is_verbose() {
            let options = request.option_names().join(", ");
            self.print_note(&paint(DIM, format!("ask   {} ({options})", request.summary())));
        }
        match self.options.rules.decide(&request) {
            RequestAction::Allow(answer) => {
                self.print_note(&format!("allowed: {}", request.summary()));
                self.conn.send_result(&request.id, &answer)
            }
            RequestAction::AskUser => {
                self.transcript.finish()?;
                self.conn.watch_stdin()?;
                self.conn.set_stdin_paused(false);
                self.open_requests.push_back(request);
                if self.open_requests.len() == 1 {
                    self.show_question();
                }
                Ok(())
            }
            RequestAction::LeaveOpen => {
                let session = &self.target.session;
                self.print_note(&format!(
                    "{} asks: {}; answer it with `jackfield answer {session} …` or `jackfield attach \
                     {session}`",
                    self.target.agent,
                    request.summary()
                ));
                Ok(())
            }
            RequestAction::Deny(answer) => self.deny_request(&request, &answer),
            RequestAction::Fail(answer) => {
                self.deny_request(&request, &answer)?;
                self.cancel_turn(CancelCause::Denied)
            }
            // The hub ends the turn with an error that names the request.
            RequestAction::FailTurn(answer) => self.conn.send_result(&request.id, &answer),
        }
    }

    fn deny_request(
        &mut self,
        request: &PermissionPrompt,
        answer: &Value,
    ) -> Result<(), CommandError> {
        if let Some(turn) = &mut self.turn {
            turn.denied.push(format!("{} asked: {}", self.target.agent, request.summary()));
            // The rule keeps `--approve` from allowing it.
            turn.denied_by_rule |= request.must_ask_user;
        }
        self.print_note(&format!("denied: {}", request.summary()));
        self.conn.send_result(&request.id, answer)
    }

    /// Records a request that a policy rule denied, so that the command fails.
    pub(super) fn report_denial(&mut self, subject: &str, decision: &Value) {
        let why = decision["why"].as_str().unwrap_or_default();
        let subject = to_one_line(subject, TITLE_CHARS_MAX);
        self.print_note(&format!("denied by a policy rule: {subject}: {why}"));
        if let Some(turn) = &mut self.turn {
            turn.denied.push(format!("{} asked: {subject}: {why}", self.target.agent));
            turn.denied_by_rule = true;
        }
    }

    /// Handles a line of stdin: the answer to the shown question, or else a prompt.
    pub(super) fn on_stdin_line(
        &mut self,
        line: Result<String, CommandError>,
    ) -> Result<(), CommandError> {
        let line = match line {
            Ok(line) => line,
            Err(error) if self.stdin_prompts.is_some() => {
                self.report_error(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(request) = self.open_requests.front() else { return self.on_prompt_line(&line) };
        let Some(answer) = request.answer_for_input(&line) else {
            self.show_question();
            return Ok(());
        };
        let id = request.id.clone();
        self.open_requests.pop_front();
        self.conn.send_result(&id, &answer)?;
        self.show_question();
        Ok(())
    }

    /// Denies open requests, because stdin can no longer answer them.
    pub(super) fn on_stdin_closed(&mut self) -> Result<(), CommandError> {
        if let Some(prompts) = &mut self.stdin_prompts {
            prompts.is_closed = true;
        }
        self.options.rules.otherwise.get_or_insert(UnapprovedAction::Deny);
        while let Some(request) = self.open_requests.pop_front() {
            self.deny_request(&request, &request.reject_once())?;
        }
        Ok(())
    }

    fn show_question(&mut self) {
        if let Some(request) = self.open_requests.front() {
            self.conn.show_question(&request.format_question(&self.target.agent));
        }
    }

    /// Removes a request that another client has answered or the agent has withdrawn.
    pub(super) fn withdraw_request(&mut self, request_id: &str) {
        let is_shown = self.open_requests.front().is_some_and(|it| it.id == request_id);
        self.open_requests.retain(|it| it.id != request_id);
        if is_shown {
            self.output.print_alert("");
            self.print_note("the request was answered elsewhere or withdrawn");
            self.show_question();
        }
    }
}
