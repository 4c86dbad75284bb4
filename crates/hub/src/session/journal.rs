//! Summaries for the journal, and retries of appends that failed.

use super::Session;
use crate::{
    Output, Seq, Time, context::HubContext, limits, log::AppendedEvent, parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::EventBody;

impl Session {
    /// Appends an event that happens now.
    pub(crate) fn append_event(&mut self, cx: &mut HubContext, body: EventBody) -> Seq {
        self.append_event_at(cx, cx.now, body)
    }

    /// Appends an event. It is delivered when the journal has reported it durable.
    pub(crate) fn append_event_at(
        &mut self,
        cx: &mut HubContext,
        at: Time,
        body: EventBody,
    ) -> Seq {
        let AppendedEvent { event, is_stored_now, summary, needs_summary_timer } =
            self.log.append_event(at, body);
        let seq = event.seq;
        let (changes_queue, may_have_key) = match event.body {
            EventBody::Queued(_) | EventBody::Prompted(_) => (true, true),
            EventBody::Withdrawn(_) => (true, false),
            EventBody::Opened(_) => (false, true),
            _ => (false, false),
        };
        if changes_queue {
            self.count_queue(&cx.retained_bytes);
        }
        if needs_summary_timer {
            cx.timers.set(cx.now.plus(limits::SUMMARY_MS), HubTimer::Summary(self.id.clone()));
        }
        if is_stored_now {
            cx.outputs.push_back(Output::Append { session: self.id.clone(), event, summary });
        }
        if may_have_key {
            self.index_last_key(cx);
        }
        seq
    }

    /// The time for a summary has come, some time after the end of a turn.
    pub(crate) fn on_summary_due(&mut self, cx: &mut HubContext) {
        if self.log.is_all_durable() {
            self.store_summary(cx);
        } else {
            // A summary of events that are not stored would be ahead of its log.
            cx.timers.set(cx.now.plus(limits::SUMMARY_MS), HubTimer::Summary(self.id.clone()));
        }
    }

    /// Stores the summary if it is due.
    pub(crate) fn store_summary(&mut self, cx: &mut HubContext) {
        if let Some((upto, summary)) = self.log.take_due_summary() {
            cx.outputs.push_back(Output::Summarize { session: self.id.clone(), upto, summary });
        }
    }

    /// An append failed: all pending events are sent again later. Returns the number of failures in a row.
    pub(crate) fn schedule_append_retry(&mut self, cx: &mut HubContext) -> u32 {
        let retry = self.log.count_failed_append();
        let at = cx.now.plus(retry.delay_ms);
        cx.timers.set(at, HubTimer::AppendRetry(self.id.clone()));
        retry.failures
    }

    /// Sends all pending events to the journal again.
    pub(crate) fn retry_appends(&mut self, parts: &mut HubParts) {
        for (event, summary) in self.log.retry_appends() {
            let session = self.id.clone();
            parts.cx.outputs.push_back(Output::Append { session, event, summary });
        }
        self.restart_last_summary(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Hub, Input, Recovered};
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
        assert_eq!((hub.parts.cx.now, hub.poll_timeout()), (Time(DAY), None));
    }

    #[test]
    fn at_the_end_nothing_is_left_to_be_summed_up() {
        let mut hub = hub();
        assert!(tell(&mut hub, 1, durable()).is_empty());
        assert_eq!(tell(&mut hub, 2, Input::Stop), ["summarize up to 6", "stopped"]);
    }
}
