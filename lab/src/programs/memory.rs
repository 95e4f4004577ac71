//! The memory that this operating-system process holds, in bytes.
//!
//! Anonymous and shared-memory pages are counted, pages of files are not, so that code that is paged in
//! during a measurement does not look like data. `smaps_rollup` walks the page tables and is exact. The sums
//! in `status` are approximate on kernels that count per CPU, which would drown a thousand small processes,
//! so they are used only where `smaps_rollup` is missing.

/// Resident bytes of this process without pages of files.
///
/// # Errors
///
/// A sentence if the kernel does not tell.
pub fn resident() -> Result<u64, String> {
    resident_of("self")
}

/// The same of the process with this number, as text.
///
/// # Errors
///
/// A sentence if the kernel does not tell.
pub fn resident_of(process: &str) -> Result<u64, String> {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok();
    if let Some(bytes) = rollup.and_then(|text| sum(&text, &["Anonymous:", "Pss_Shmem:"])) {
        return Ok(bytes);
    }
    let path = format!("/proc/{process}/status");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("Cannot read {path}: {error}."))?;
    sum(&text, &["RssAnon:", "RssShmem:"])
        .ok_or_else(|| "This kernel does not report the memory of a process.".to_owned())
}

/// The sum of the named lines, which the kernel gives in kibibytes; `None` if one is absent.
fn sum(text: &str, names: &[&str]) -> Option<u64> {
    let mut total = 0;
    for name in names {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        total += kibibytes * 1024;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_named_lines() {
        let text = "Rss: 9 kB\nAnonymous:     12 kB\nPss_Shmem:      4 kB\n";
        assert_eq!(sum(text, &["Anonymous:", "Pss_Shmem:"]), Some(16 * 1024));
        assert_eq!(sum(text, &["Anonymous:", "Absent:"]), None);
    }

    #[test]
    fn sees_what_is_touched() {
        let before = resident().unwrap();
        let block = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = resident().unwrap();
        assert!(after >= before + (31 << 20), "{before} {after}");
        drop(block);
    }
}
