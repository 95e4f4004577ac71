//! Describes the machine that the figures come from, as far as it explains them.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::build_info::{COMPILER, version};

/// The description, as pairs of a label and a value.
#[must_use]
pub fn describe() -> Vec<(&'static str, String)> {
    vec![
        ("Date", today()),
        ("Processor", processor()),
        ("Cores", cores()),
        ("Memory", memory()),
        ("Kernel", kernel()),
        ("Huge pages", huge_pages()),
        ("Compiler", COMPILER.to_owned()),
        ("Allocator", allocator()),
        ("Weald", version()),
    ]
}

/// The description as indented lines of text.
#[must_use]
pub fn text() -> String {
    describe()
        .iter()
        .map(|(label, value)| format!("{label:<11} {value}\n"))
        .collect()
}

const UNKNOWN: &str = "unknown";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the first line that begins with `name` and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

fn processor() -> String {
    field(&read("/proc/cpuinfo"), "model name")
        .unwrap_or(UNKNOWN)
        .to_owned()
}

fn cores() -> String {
    let allowed = weald::available_workers();
    let present = read("/proc/cpuinfo")
        .lines()
        .filter(|l| l.starts_with("processor"))
        .count();
    format!("{allowed} allowed, {present} present")
}

fn memory() -> String {
    let text = read("/proc/meminfo");
    let total = field(&text, "MemTotal").and_then(|v| v.strip_suffix("kB")?.trim().parse().ok());
    let Some(kibibytes): Option<f64> = total else {
        return UNKNOWN.to_owned();
    };
    format!("{:.1} GiB", kibibytes / f64::from(1 << 20))
}

fn kernel() -> String {
    let release = read("/proc/sys/kernel/osrelease");
    format!("Linux {} on {}", release.trim(), std::env::consts::ARCH)
}

/// The mode in brackets, as in `always [madvise] never`.
fn huge_pages() -> String {
    chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled"))
        .unwrap_or(UNKNOWN)
        .to_owned()
}

fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(mode, _)| mode)
}

/// The allocator, as the program `weald` sets it in its `main`.
fn allocator() -> String {
    "Weald's own memory for processes and messages; mimalloc for the rest".to_owned()
}

fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970, after Howard Hinnant's `civil_from_days` for days past 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_days() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }

    #[test]
    fn modes_and_fields_are_found() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen(""), None);
        assert_eq!(
            field("a : 1\nmodel name\t: X: Y\n", "model name"),
            Some("X: Y")
        );
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let text = text();
        assert!(text.contains("Linux") && text.contains("allowed"), "{text}");
    }
}
