//! Whether to ask again before anything was answered, and when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// More would only hide that the server is down.
const TRIES_MAX: u32 = 3;
/// Who is told to wait longer should know it now.
const WAIT_MAX: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The patience of one request.
#[derive(Debug, Default)]
pub(super) struct Patience {
    tries: u32,
    waited: Duration,
}

impl Patience {
    /// How long to wait before the next try; none if this was the last.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let wait = asked.unwrap_or(FIRST_WAIT * 2_u32.pow(self.tries));
        if self.tries == TRIES_MAX || WAIT_MAX < self.waited + wait {
            return None;
        }
        self.tries += 1;
        self.waited += wait;
        Some(wait)
    }
}

/// A status with which a server says that it may work later.
pub(super) fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// `Retry-After`: seconds, or a date.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = UNIX_EPOCH + Duration::from_secs(date(value)?);
    Some(at.duration_since(now).unwrap_or_default())
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that servers write.
fn date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = text.split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, clock, "GMT"] = words[..] else { return None };
    let month = MONTHS.find(month).filter(|it| it % 3 == 0 && month.len() == 3)? as u64 / 3 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let clock: Vec<u64> = clock.split(':').map_while(|it| it.parse().ok()).collect();
    let [hours, minutes, seconds] = clock[..] else { return None };
    let is_sound = (1970..10_000).contains(&year) && (1..=31).contains(&day);
    if !is_sound || 23 < hours || 59 < minutes || 60 < seconds {
        return None;
    }
    Some(((days(year, month) + day - 1) * 24 + hours) * 3600 + minutes * 60 + seconds)
}

/// Days from 1970 to the first of a month.
fn days(year: u64, month: u64) -> u64 {
    // A year that begins in March has its odd day at its end.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + (month * 153 + 2) / 5 - 719_468
}

#[cfg(test)]
mod tests {
    use super::{Patience, date, may_pass, retry_after};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_server_is_asked_three_times_more_and_no_longer_than_half_a_minute() {
        let mut patience = Patience::default();
        let waits: Vec<_> = std::iter::from_fn(|| patience.next(None)).collect();
        assert_eq!(waits, [500, 1000, 2000].map(Duration::from_millis));
        let seconds = |it| Some(Duration::from_secs(it));
        let mut patience = Patience::default();
        assert_eq!(patience.next(seconds(31)), None);
        assert_eq!(patience.next(seconds(20)), seconds(20));
        assert_eq!(patience.next(seconds(11)), None);
        assert_eq!(patience.next(seconds(10)), seconds(10));
    }

    #[test]
    fn dates_are_read() {
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(date("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
        for text in ["", "soon", "Sun, 06 anF 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49 GMT"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn what_the_server_asks_for_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let after = |it| retry_after(it, now);
        assert_eq!(after(" 2 "), Some(Duration::from_secs(2)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!((after("-1"), after("later")), (None, None));
    }

    #[test]
    fn only_what_may_pass_is_waited_for() {
        let passing: Vec<u16> = (100..600).filter(|it| may_pass(*it)).collect();
        assert_eq!(passing, [429, 502, 503, 504]);
    }
}
