//! What a workload is: its name, its keys, its metrics, and the function that does the work on Weald.

use crate::error::Error;
use crate::metric::Metric;
use crate::nearest;
use crate::params::Params;

/// One workload: its name, its keys, its metrics, and its implementation.
#[derive(Debug)]
pub struct Workload {
    /// The name on the command line and in every record.
    pub name: &'static str,
    /// The question that it answers, in one sentence for readers of the report.
    pub question: &'static str,
    /// The required keys, except `workers`; the first one is the size of a row.
    pub keys: &'static [&'static str],
    /// The optional keys.
    pub optional: &'static [&'static str],
    /// The metrics that a measured program prints, the most important one first.
    pub metrics: &'static [&'static str],
    /// Metrics that explain the others and that only some systems print.
    pub explaining: &'static [&'static str],
    /// What a reader needs to know so as not to misread the figures; may be empty.
    pub remark: &'static str,
    /// Does the work on Weald, inside this operating-system process.
    pub run: fn(&Params) -> Result<Vec<Metric>, Error>,
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The number of workers to run with, which every call states.
pub(super) fn workers(params: &Params) -> Result<usize, Error> {
    params.count("workers")
}

impl Workload {
    /// Refuses keys that this workload does not have, and demands those that it needs.
    pub fn check(&self, params: &Params) -> Result<(), Error> {
        for key in self.keys.iter().chain(&["workers"]) {
            params.text(key)?;
        }
        for (key, _) in params.iter() {
            let known =
                key == "workers" || self.keys.contains(&key) || self.optional.contains(&key);
            if !known {
                return Err(Error::Usage(nearest::unknown("key", key, self.keys)));
            }
        }
        Ok(())
    }

    /// All metrics that a measured program may print.
    #[must_use]
    pub fn printable(&self) -> Vec<&'static str> {
        self.metrics
            .iter()
            .chain(self.explaining)
            .copied()
            .collect()
    }

    /// The size of a row, which is the value of the first key.
    #[must_use]
    pub fn size(&self, params: &Params) -> Option<u64> {
        params.get(self.keys.first()?)?.parse().ok()
    }
}
