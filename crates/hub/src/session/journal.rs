//! Summaries for the journal, and retries of appends that failed.

use crate::{AppendFailure, Hub, Note, Output, SessionId, limits, timer::Timer};
use jackfield_protocol::Fault;

impl Hub {
    /// The time for a summary has come, some time after the end of a turn.
    pub(crate) fn on_summary_due(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.log.is_all_durable() {
            self.summarize(id);
        } else {
            // A summary of events that are not stored would be ahead of its log.
            self.cx.timers.set(self.cx.now.plus(limits::SUMMARY_MS), Timer::Summary(id.clone()));
        }
    }

    /// Stores all due summaries before the end, so that the next start reads nothing else.
    pub(crate) fn summarize_all(&mut self) {
        let due = self.sessions.iter().filter(|(_, it)| it.log.can_store_summary());
        let due: Vec<SessionId> = due.map(|(id, _)| id.clone()).collect();
        for id in due {
            self.summarize(&id);
        }
    }

    pub(super) fn summarize(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some((upto, summary)) = session.log.take_due_summary() {
            self.cx.outputs.push_back(Output::Summarize { session: id.clone(), upto, summary });
        }
    }

    pub(crate) fn on_append_failed(&mut self, id: &SessionId, why: AppendFailure) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match why {
            AppendFailure::Fenced => {
                let held = session.log.pending_events().count();
                session.leaving.get_or_insert_default();
                let fault = Fault::Fenced { session: id.to_string() };
                self.remove(id, &fault);
                self.note(Note::SessionFenced { session: id.clone(), held });
                self.after_stop();
            }
            AppendFailure::Unavailable { fault, why } => {
                let retry = session.log.count_failed_append();
                let held = session.log.pending_events().count();
                self.cx
                    .timers
                    .set(self.cx.now.plus(retry.delay_ms), Timer::AppendRetry(id.clone()));
                self.on_storage_failed(retry.failures, fault, &why);
                self.note(Note::AppendRetried { session: id.clone(), held, why });
                self.after_stop();
            }
        }
    }

    /// Sends all pending events to the journal again.
    pub(crate) fn append_again(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (event, summary) in session.log.retry_appends() {
            self.cx.outputs.push_back(Output::Append { session: id.clone(), event, summary });
        }
        self.sum_up_again(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Input, Recovered, Seq, Time};
    use jackfield_events::SessionSummary;

    /// A hub that finds a turn which the last daemon did not end, and ends it.
    fn hub() -> Hub {
        let state =
            SessionSummary { seq: 5, turns: 1, open_turn: Some(1), ..SessionSummary::default() };
        let mut hub =
            Hub::new(Config::default(), Time(0), [Recovered { session: "s-1".into(), state }]);
        let ended = shown(&mut hub);
        assert_eq!(ended, ["append 6 without summary"]);
        hub
    }

    fn tell(hub: &mut Hub, at: u64, input: Input) -> Vec<String> {
        hub.handle(Time(at), input);
        shown(hub)
    }

    fn shown(hub: &mut Hub) -> Vec<String> {
        let shown = |output| match output {
            Output::Append { event, summary: None, .. } => {
                Some(format!("append {} without summary", event.seq.0))
            }
            Output::Summarize { upto, summary, .. } => {
                let state = SessionSummary::from_summary(&summary).expect("it is a summary");
                assert_eq!((state.upto(), state.open_turn), (upto, None));
                Some(format!("summarize up to {}", upto.0))
            }
            Output::Stopped => Some("stopped".to_owned()),
            _ => None,
        };
        std::iter::from_fn(|| hub.poll_output()).filter_map(shown).collect()
    }

    fn durable() -> Input {
        Input::Durable { session: "s-1".into(), upto: Seq(6) }
    }

    #[test]
    fn the_summary_follows_the_end_of_a_turn_once_that_is_written() {
        let mut hub = hub();
        let later = limits::SUMMARY_MS;
        assert_eq!(hub.poll_timeout(), Some(Time(later)));
        assert!(tell(&mut hub, later, Input::Tick).is_empty(), "the end is not written yet");
        assert!(tell(&mut hub, later, durable()).is_empty());
        assert_eq!(tell(&mut hub, 2 * later, Input::Tick), ["summarize up to 6"]);
        assert_eq!(hub.poll_timeout(), None);
    }

    #[test]
    fn clock_jumps_run_each_timer_once_and_time_does_not_go_back() {
        const DAY: u64 = 86_400_000;
        let mut hub = hub();
        assert!(tell(&mut hub, 1, durable()).is_empty());
        assert_eq!(tell(&mut hub, DAY, Input::Tick), ["summarize up to 6"]);
        assert!(tell(&mut hub, 5, Input::Tick).is_empty());
        assert_eq!((hub.cx.now, hub.poll_timeout()), (Time(DAY), None));
    }

    #[test]
    fn at_the_end_nothing_is_left_to_be_summed_up() {
        let mut hub = hub();
        assert!(tell(&mut hub, 1, durable()).is_empty());
        assert_eq!(tell(&mut hub, 2, Input::Stop), ["summarize up to 6", "stopped"]);
    }
}
