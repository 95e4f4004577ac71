//! The laboratory: the workloads that Weald is judged by, the same programs on its rivals, and the
//! way from raw figures to a table, a stream of records and a page.
//!
//! The modules in reading order. First what is measured, then who is measured and how often, then
//! what becomes of the figures; `bench` is the spine that tells the story from top to bottom.
//!
//! Every measured program, Weald's own included, is a fresh operating-system process that obeys
//! one protocol (`bench_one`), so that no system profits from what another one warmed up.

pub mod error;
pub mod metric;
pub mod params;
pub mod programs;
pub mod serve;
pub mod workload;

pub mod bench_one;

pub mod plan;
pub mod rivals;
pub mod system;

pub mod alternate;
pub mod bench;
pub mod child;
pub mod descendants;
pub mod stats;

pub mod compare;
pub mod documents;
pub mod machine;
pub mod record;
pub mod report;
pub mod table;

pub mod figure;
pub mod nearest;

/// The version of this program: the package's, and the commit where it is known.
#[must_use]
pub fn version() -> String {
    let commit = env!("WEALD_COMMIT");
    if commit.is_empty() {
        env!("CARGO_PKG_VERSION").to_owned()
    } else {
        format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
    }
}
