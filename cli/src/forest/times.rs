//! Times as text, in UTC: 2026-05-30T12:00:00.000Z.

use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;

/// A time to the millisecond; one before 1970 is shown as the beginning of 1970.
pub(crate) fn shown(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (days, rest) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Reads a day, or a time with minutes, seconds or parts of them, which may end with `Z`. A day means its beginning.
pub(crate) fn read(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00"),
    };
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (
        digits(date.next()?, 4)?,
        digits(date.next()?, 2)?,
        digits(date.next()?, 2)?,
    );
    let days = days(year, month, day).filter(|days| civil(*days) == (year, month, day))?;
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, part) = match parts.next() {
        None => (0, 0),
        Some(seconds) => {
            let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
            let is_part = part.len() <= 9 && !part.is_empty();
            let nanoseconds = is_part.then(|| format!("{part:0<9}"))?;
            (digits(whole, 2)?, digits(&nanoseconds, 9)?)
        }
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    let since = Duration::from_secs(seconds) + Duration::from_nanos(part);
    is_time.then(|| SystemTime::UNIX_EPOCH + since)
}

fn digits(text: &str, len: usize) -> Option<u64> {
    let is_it = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    is_it.then(|| text.parse().ok()).flatten()
}

/// The date of a day since 1970, after Howard Hinnant's `civil_from_days` for days past 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// The day since 1970 of a date, after Howard Hinnant's `days_from_civil`; `None` before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    let year = year - u64::from(is_date && month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = is_date.then(|| (153 * shifted_month + 2) / 5 + day - 1)?;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T23:59:59.000Z", 951_868_799),
            ("2026-05-30T12:00:00.000Z", 1_780_142_400),
            ("2100-03-01T00:00:00.000Z", 4_107_542_400),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(shown(time), text);
            assert_eq!(read(text), Some(time));
        }
        assert_eq!(read("2000-03-01"), read("2000-03-01T00:00Z"));
        let part = read("1970-01-01 00:00:01.5").unwrap();
        assert_eq!(part, SystemTime::UNIX_EPOCH + Duration::from_millis(1500));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "17",
            "2026-13-01",
            "2026-02-30",
            "1969-12-31",
            "2026-00-10",
            "2026-01-01T24:00",
            "2026-01-01T10",
            "26-1-1",
            "2026-01-01T10:00:00.",
            "2026-01-01T10:00:00.0000000001",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
