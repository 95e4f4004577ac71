//! A row of the plan: one workload at one size, how often it is run, and with how many workers.

use std::time::Duration;

use crate::params::Params;
use crate::workload::{self, Workload};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A dozen rows of small size, three runs each: well under a minute for Weald alone.
    Glance,
    /// Every workload at small sizes, few runs: to see whether everything works.
    Quick,
    /// All sizes; the long rows run once.
    Full,
}

/// How long one run of a row takes, which decides how often it is run by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Light,
    Medium,
    Heavy,
}

/// The worker counts that a row is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// All that the caller asks for.
    All,
    /// The largest of them only.
    Largest,
    /// The smallest of them only.
    Smallest,
    /// Only those that leave a worker idle.
    AtLeastTwo,
    /// One only: a second worker would find nothing to do.
    One,
}

/// One workload at one size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The workload.
    pub workload: &'static Workload,
    /// Its parameters, except `workers`.
    pub params: Params,
    /// Whether rivals have no program for it.
    pub only_weald: bool,
    weight: Weight,
    lanes: Lanes,
}

/// Rows that are run in the same rounds.
#[derive(Clone, Debug)]
pub struct Group {
    /// The rows in the order of a round.
    pub rows: Vec<Row>,
}

impl Row {
    /// A row of the workload with this name: light, and run on every system.
    ///
    /// # Panics
    ///
    /// If there is no such workload: only this crate writes plans.
    #[must_use]
    pub fn new(workload: &str, params: Params) -> Self {
        let workload = workload::find(workload).expect("a plan names known workloads");
        Self {
            workload,
            params,
            only_weald: false,
            weight: Weight::Light,
            lanes: Lanes::All,
        }
    }

    pub(super) fn weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }

    pub(super) fn lanes(mut self, lanes: Lanes) -> Self {
        self.lanes = lanes;
        self
    }

    pub(super) fn only_weald(mut self) -> Self {
        self.only_weald = true;
        self
    }

    /// How often this row is run by default.
    #[must_use]
    pub fn runs(&self, level: Level) -> usize {
        match (level, self.weight) {
            (Level::Full, Weight::Light) => 5,
            (Level::Full, Weight::Medium) | (Level::Glance, Weight::Light) => 3,
            (Level::Full, Weight::Heavy) | (Level::Glance | Level::Quick, _) => 1,
        }
    }

    /// About how long one run takes, on an idle machine. It only has to be right on the average, because the course of
    /// the bench corrects it.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let seconds = self
            .params
            .get("seconds")
            .and_then(|text| text.parse().ok());
        let usual = match self.weight {
            Weight::Light => 300,
            Weight::Medium => 1_500,
            Weight::Heavy => 5_000,
        };
        match seconds {
            Some(seconds) => Duration::from_secs(seconds) + Duration::from_millis(200),
            None => Duration::from_millis(usual),
        }
    }

    /// The offered worker counts that this row is run with.
    #[must_use]
    pub fn workers(&self, offered: &[usize]) -> Vec<usize> {
        let (least, largest) = (offered.iter().min(), offered.iter().max());
        let fits = |count: &usize| match self.lanes {
            Lanes::All => true,
            Lanes::Largest => Some(count) == largest,
            Lanes::Smallest => Some(count) == least,
            Lanes::AtLeastTwo => *count >= 2,
            Lanes::One => *count == 1,
        };
        offered.iter().copied().filter(fits).collect()
    }

    /// Whether this is a calm run that other rows of its group are judged by.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        let has_none = || self.params.get("offenders") == Some("0");
        self.params.get("offender") == Some("none") || self.ticks_read_files() && has_none()
    }

    /// Whether this row, of the same group, is judged by `calm`: its ticks do the same.
    #[must_use]
    pub fn is_judged_by(&self, calm: &Row) -> bool {
        calm.is_calm() && !self.is_calm() && self.ticks_read_files() == calm.ticks_read_files()
    }

    /// Whether each tick also reads a file and looks up a name.
    fn ticks_read_files(&self) -> bool {
        self.params.get("offender") == Some("file")
    }
}

/// How heavy a row with this many processes or messages is.
pub(super) fn weight_of(count: usize) -> Weight {
    match count {
        0..1_000_000 => Weight::Light,
        1_000_000..10_000_000 => Weight::Medium,
        _ => Weight::Heavy,
    }
}
