//! Times as people and programs read them. All are UTC.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A time as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// How long ago it was, `5 minutes ago`; or, if the clock was wrong then or is now, how far off it is: `in 2 days`.
    pub(crate) relative: Cow<'static, str>,
    /// When it was: `23 Nov 2026, 21:44 UTC`.
    pub(crate) exact: String,
    /// The same for programs: `2026-11-23T21:44:05Z`.
    pub(crate) machine: Rfc3339,
}

impl Stamp {
    pub(crate) fn new(time: SystemTime, now: SystemTime) -> Self {
        let civil = Civil::of(time);
        let machine = Rfc3339::of_civil(&civil);
        Self {
            relative: relative(time, now),
            exact: exact(&civil, machine.as_str()),
            machine,
        }
    }

    /// When a version was made. The times of versions never go back: after a fast clock was set right, each new version
    /// has the time of the former one, until the clock has come to it. What was written just now is not “in 2 days”.
    pub(crate) fn of_version(time: SystemTime, now: SystemTime) -> Self {
        Self::new(time.min(now), now)
    }
}

/// `23 Nov 2026, 21:44 UTC`, of the same time as RFC 3339 writes it. A page has twenty of them, so they are not
/// formatted.
fn exact(civil: &Civil, machine: &str) -> String {
    let day = match civil.day {
        0..10 => &machine[9..10],
        _ => &machine[8..10],
    };
    let (month, year) = (MONTHS[civil.month - 1], &machine[..4]);
    [day, " ", month, " ", year, ", ", &machine[11..16], " UTC"].concat()
}

/// For how long a page with a time of this age stays right: the number of the minute, the hour or the day.
pub(crate) fn freshness(newest: SystemTime, now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match now.duration_since(newest).unwrap_or_default().as_secs() {
        0..3_600 => since / 60,
        3_600..86_400 => since / 3_600,
        _ => since / 86_400,
    }
}

fn relative(time: SystemTime, now: SystemTime) -> Cow<'static, str> {
    let (distance, is_past) = match now.duration_since(time) {
        Ok(age) => (age, true),
        Err(ahead) => (ahead.duration(), false),
    };
    let seconds = distance.as_secs();
    let (count, unit) = match seconds {
        0..60 => return Cow::Borrowed("just now"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        86_400..2_592_000 => (seconds / 86_400, "day"),
        2_592_000..31_536_000 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    let plural = if count == 1 { "" } else { "s" };
    Cow::Owned(match is_past {
        true => format!("{count} {unit}{plural} ago"),
        false => format!("in {count} {unit}{plural}"),
    })
}

/// As RFC 3339 writes it, in whole seconds.
pub(crate) fn machine(time: SystemTime) -> String {
    Rfc3339::of(time).as_str().to_owned()
}

/// A time as RFC 3339 writes it, in whole seconds. Every message has one, so it is made without formatting and without
/// an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rfc3339([u8; 20]);

impl Rfc3339 {
    pub(crate) fn of(time: SystemTime) -> Self {
        Self::of_civil(&Civil::of(time))
    }

    fn of_civil(civil: &Civil) -> Self {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = *civil;
        let mut text = *b"0000-00-00T00:00:00Z";
        // No clock shows a year of five digits, and readers of this format could not read one.
        put(&mut text, 0, year / 100 % 100);
        put(&mut text, 2, year % 100);
        put(&mut text, 5, month as u64);
        for (at, number) in [(8, day), (11, hour), (14, minute), (17, second)] {
            put(&mut text, at, number);
        }
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The same as bytes, which nobody has to check for UTF-8.
    pub(crate) fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The two digits of each number below a hundred.
pub(crate) static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [*b"00"; 100];
    let (mut tens, mut at) = (b'0', 0);
    while at < 100 {
        let mut ones = b'0';
        while ones <= b'9' {
            pairs[at] = [tens, ones];
            (ones, at) = (ones + 1, at + 1);
        }
        tens += 1;
    }
    pairs
};

/// Writes two digits.
fn put(text: &mut [u8; 20], at: usize, number: u64) {
    let number = usize::try_from(number % 100).unwrap_or_default();
    text[at..at + 2].copy_from_slice(&PAIRS[number]);
}

/// The same, with all that is known of the second.
pub(crate) fn machine_exact(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let whole = machine(time);
    format!(
        "{}.{:09}Z",
        whole.trim_end_matches('Z'),
        since.subsec_nanos()
    )
}

/// Reads what [`machine_exact`] writes, and the same with fewer digits.
pub(crate) fn parse_exact(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_fraction =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|it| it.is_ascii_digit());
    let nanos: u64 = format!("{fraction:0<9}")
        .parse()
        .ok()
        .filter(|_| is_fraction)?;
    // That was the end of the second.
    Some(parse(whole)? - Duration::from_nanos(999_999_999) + Duration::from_nanos(nanos))
}

/// Reads `2026-11-23`, `2026-11-23T21:44`, with seconds or without, with `Z` or without: the last moment that it names.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "23:59:59"));
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (digits(time.next()?)?, digits(time.next()?)?);
    let second = time.next().map_or(Some(59), digits)?;
    let is_time = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=length_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !is_time {
        return None;
    }
    let seconds =
        (days_before(year, month) + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second;
    // The end of that second.
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(999_999_999))
}

fn digits(text: &str) -> Option<u64> {
    let is_number =
        !text.is_empty() && text.len() <= 4 && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// The days from 1970 to the beginning of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let before = year - 1;
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(before) - leaps(1969);
    years + (1..month).map(|month| length_of(year, month)).sum::<u64>()
}

fn length_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time of the calendar.
struct Civil {
    year: u64,
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Civil {
    /// By Howard Hinnant's `civil_from_days`, for days from 1970 on.
    fn of(time: SystemTime) -> Self {
        let seconds = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let days = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Counted from March.
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        Self {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month: usize::try_from(month).unwrap_or(1),
            day: day_of_year - (153 * shifted + 2) / 5 + 1,
            hour: seconds / 3_600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_time_comes_back_as_it_was() {
        let time = UNIX_EPOCH + Duration::new(1_795_000_000, 123_456_789);
        let text = machine_exact(time);
        assert!(text.ends_with(".123456789Z"), "{text}");
        assert_eq!(parse_exact(&text), Some(time));
        let whole = Some(time - Duration::from_nanos(123_456_789));
        assert_eq!(parse_exact(&machine(time)), whole);
        assert_eq!(
            parse_exact(&text.replace("123456789", "12")),
            whole.map(|it| it + Duration::from_millis(120))
        );
        for text in [
            "",
            "2026-11-23",
            "2026-11-23T21:44:05",
            "2026-11-23T21:44:05.Z",
            "2026-11-23T21:44:05.+1Z",
        ] {
            assert_eq!(parse_exact(text), None, "{text}");
        }
    }

    #[test]
    fn each_day_of_five_hundred_years_is_read_as_it_is_written() {
        for day in 0..182_000_u64 {
            let time = UNIX_EPOCH + Duration::from_secs(day * 86_400 + day % 86_400);
            let read = parse(&machine(time)).unwrap();
            assert_eq!(
                read.duration_since(time).unwrap().as_secs(),
                0,
                "{}",
                machine(time)
            );
        }
        let leap = UNIX_EPOCH + Duration::from_secs(951_782_400);
        assert_eq!(machine(leap), "2000-02-29T00:00:00Z");
    }

    #[test]
    fn a_time_is_told_in_two_ways() {
        let time = parse("2026-11-23T21:44:05Z").unwrap();
        let stamp = Stamp::new(time, time + Duration::from_secs(3_700));
        assert_eq!(
            (&*stamp.relative, stamp.exact.as_str()),
            ("1 hour ago", "23 Nov 2026, 21:44 UTC")
        );
        let stamp = Stamp::new(parse("2027-01-03T04:05").unwrap(), time);
        assert_eq!(stamp.exact, "3 Jan 2027, 04:05 UTC");
        for (seconds, told) in [
            (0, "just now"),
            (130, "2 minutes ago"),
            (200_000, "2 days ago"),
            (40_000_000, "1 year ago"),
        ] {
            assert_eq!(relative(time, time + Duration::from_secs(seconds)), told);
        }
        for (seconds, told) in [
            (59, "just now"),
            (3_600, "in 1 hour"),
            (315_360_000, "in 10 years"),
        ] {
            assert_eq!(relative(time + Duration::from_secs(seconds), time), told);
        }
    }

    #[test]
    fn the_end_of_what_was_named_is_meant() {
        assert_eq!(
            machine(parse("2026-11-23").unwrap()),
            "2026-11-23T23:59:59Z"
        );
        assert_eq!(
            machine(parse("2026-11-23T21:44").unwrap()),
            "2026-11-23T21:44:59Z"
        );
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2026-11-31",
            "2026-11-23T24:00",
            "1969-01-01",
            "2026-11-23T+1:00",
            "99999-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
