//! Decides whether and when to retry a request that got no response yet.

use std::time::{Duration, SystemTime};

/// More retries would only hide that the server is down.
const RETRIES_MAX: u32 = 3;
/// If a server demands a longer wait, the user gets the error at once.
const TOTAL_WAIT_MAX: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The retries of one request, with exponential backoff.
#[derive(Debug, Default)]
pub(super) struct RetryBackoff {
    retries: u32,
    waited: Duration,
}

impl RetryBackoff {
    /// Returns how long to wait before the next attempt, or `None` if the request must fail.
    /// `retry_after` is the wait that the server asked for.
    pub(super) fn next_wait(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let wait = retry_after.unwrap_or(FIRST_WAIT * 2_u32.pow(self.retries));
        if self.retries == RETRIES_MAX || TOTAL_WAIT_MAX < self.waited + wait {
            return None;
        }
        self.retries += 1;
        self.waited += wait;
        Some(wait)
    }
}

/// Whether the status reports a temporary condition.
pub(super) fn is_retryable(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{RetryBackoff, is_retryable, parse_retry_after};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn request_is_retried_three_times_and_for_30_seconds_at_most() {
        let mut backoff = RetryBackoff::default();
        let waits: Vec<_> = std::iter::from_fn(|| backoff.next_wait(None)).collect();
        assert_eq!(waits, [500, 1000, 2000].map(Duration::from_millis));
        let seconds = |it| Some(Duration::from_secs(it));
        let mut backoff = RetryBackoff::default();
        assert_eq!(backoff.next_wait(seconds(31)), None);
        assert_eq!(backoff.next_wait(seconds(20)), seconds(20));
        assert_eq!(backoff.next_wait(seconds(11)), None);
        assert_eq!(backoff.next_wait(seconds(10)), seconds(10));
    }

    #[test]
    fn http_dates_are_parsed() {
        let seconds = |it| parse_retry_after(it, UNIX_EPOCH).map(|it| it.as_secs());
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(seconds("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
        for text in ["", "soon", "Sun, 06 anF 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49 GMT"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let after = |it| parse_retry_after(it, now);
        assert_eq!(after(" 2 "), Some(Duration::from_secs(2)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!((after("-1"), after("later")), (None, None));
    }

    #[test]
    fn only_temporary_statuses_are_retryable() {
        let retryable: Vec<u16> = (100..600).filter(|it| is_retryable(*it)).collect();
        assert_eq!(retryable, [429, 502, 503, 504]);
    }
}
