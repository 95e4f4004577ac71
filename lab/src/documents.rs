//! The figures printed in the source documents, with the machines they came from.
//!
//! They are history: old machines, other clocks, other definitions. A table shows them beside the new
//! figures. A chart uses only the shape of a series, never its absolute times.

/// One document.
#[derive(Debug)]
pub struct Document {
    /// The letter that refers to it.
    pub letter: &'static str,
    /// Its title as published.
    pub title: &'static str,
    /// The title's language.
    pub language: &'static str,
    /// The machine and the systems measured on it.
    pub machine: &'static str,
}

/// One printed figure.
#[derive(Debug)]
pub struct Printed {
    /// The workload that it belongs to.
    pub workload: &'static str,
    /// The measured system.
    pub system: &'static str,
    /// The size, in our parameters.
    pub params: &'static str,
    /// The value, in our metrics and its own unit.
    pub value: &'static str,
    /// Where it is printed.
    pub document: &'static Document,
}

/// A printed series over the number of processes.
#[derive(Debug)]
pub struct Series {
    /// The measured system with its year.
    pub system: &'static str,
    /// Pairs of n and microseconds of wall time per spawn.
    pub points: &'static [(f64, f64)],
}

/// Ring and spawn in Erlang and Squeak Smalltalk.
pub static RING: Document = Document {
    letter: "A",
    language: "ja",
    title: "Erlang の ring benchmark を Squeak Smalltalk で",
    machine: "1.2 GHz Pentium M, Windows XP; Erlang 5.5.4 and Squeak Smalltalk",
};

/// Messages that an Erlang process sends to itself.
pub static MESSAGES: Document = Document {
    letter: "B",
    language: "zh",
    title: "erlang进程间发送消息的性能",
    machine: "2 GHz server, virtual machine, Red Hat with Linux 2.6.18; Erlang 5.9.2 (2012)",
};

/// A quicksort that forks, in SML# with MassiveThreads.
pub static FORKS: Document = Document {
    letter: "C",
    language: "ja",
    title: "SML# x MassiveThreadsでスレッドを2020個走らせる",
    machine: "16 cores with 32 threads; SML# 3.5.0 (2020)",
};

/// Wall time per spawn as n grows. The first Erlang point is printed as zero, so it is left out.
pub static SPAWN_SERIES: [Series; 2] = [
    Series {
        system: "Erlang 5.5.4, old document",
        points: &[
            (5_000.0, 6.2),
            (10_000.0, 6.3),
            (50_000.0, 6.88),
            (100_000.0, 4.21),
            (200_000.0, 4.375),
        ],
    },
    Series {
        system: "Squeak, old document",
        points: &[
            (1_000.0, 4.0),
            (2_000.0, 4.5),
            (5_000.0, 4.4),
            (10_000.0, 4.8),
            (20_000.0, 5.4),
            (30_000.0, 32.9),
            (40_000.0, 64.7),
            (50_000.0, 83.7),
            (60_000.0, 92.8),
        ],
    },
];

const fn spawn(system: &'static str, params: &'static str, value: &'static str) -> Printed {
    Printed {
        workload: "spawn",
        system,
        params,
        value,
        document: &RING,
    }
}

const fn ring(system: &'static str, params: &'static str, value: &'static str) -> Printed {
    Printed {
        workload: "ring",
        system,
        params,
        value,
        document: &RING,
    }
}

const fn message(params: &'static str, value: &'static str) -> Printed {
    let system = "Erlang 5.9.2";
    Printed {
        workload: "mailbox",
        system,
        params,
        value,
        document: &MESSAGES,
    }
}

const fn quicksort(params: &'static str, value: &'static str) -> Printed {
    Printed {
        workload: "quicksort",
        system: "SML# with MassiveThreads",
        params,
        value,
        document: &FORKS,
    }
}

/// All printed figures.
pub static PRINTED: [Printed; 25] = [
    spawn(
        "Erlang 5.5.4",
        "n=5000",
        "6.20 µs a spawn (3.20 µs of processor time)",
    ),
    spawn(
        "Erlang 5.5.4",
        "n=10000",
        "6.30 µs a spawn (3.10 µs of processor time)",
    ),
    spawn(
        "Erlang 5.5.4",
        "n=50000",
        "6.88 µs a spawn (5.62 µs of processor time)",
    ),
    spawn(
        "Erlang 5.5.4",
        "n=100000",
        "4.21 µs a spawn (3.44 µs of processor time)",
    ),
    spawn(
        "Erlang 5.5.4",
        "n=200000",
        "4.38 µs a spawn (3.05 µs of processor time)",
    ),
    spawn("Squeak", "n=1000", "4.0 µs a spawn"),
    spawn("Squeak", "n=10000", "4.8 µs a spawn"),
    spawn("Squeak", "n=20000", "5.4 µs a spawn"),
    spawn("Squeak", "n=50000", "83.7 µs a spawn"),
    spawn(
        "Squeak",
        "n=60000",
        "92.8 µs a spawn; larger runs did not end",
    ),
    Printed {
        workload: "spawn",
        system: "Erlang 5.9.2",
        params: "n=10000",
        value: "4.0 to 4.1 µs a spawn (2 to 4 µs of processor time); \
                25 to 33 MB growth, about 3 KB each",
        document: &MESSAGES,
    },
    ring("Erlang 5.5.4", "n=100 m=1000 tokens=1", "62 ms"),
    ring("Erlang 5.5.4", "n=1000 m=1000 tokens=1", "469 ms"),
    ring("Erlang 5.5.4", "n=10000 m=1000 tokens=1", "7,547 ms"),
    ring("Squeak", "n=100 m=1000 tokens=1", "714 ms"),
    ring("Squeak", "n=1000 m=1000 tokens=1", "7,369 ms"),
    ring("Squeak", "n=2000 m=1000 tokens=1", "16,892 ms"),
    ring(
        "Haskell",
        "n=1000 m=1000 tokens=1",
        "a little under 30,000 ms",
    ),
    message(
        "k=100000 bytes=50 payload=shared",
        "0.7 to 1.1 µs a send; 4.0 to 8.9 MB growth",
    ),
    message(
        "k=1000000 bytes=20 payload=shared",
        "1.60 µs a send; 63.6 MB growth, 67 B each",
    ),
    message(
        "k=1000000 bytes=50 payload=shared",
        "the same as with 20 bytes",
    ),
    message(
        "k=10000000 bytes=50 payload=shared",
        "2.30 µs a send; 648 MB growth, 68 B each",
    ),
    quicksort("n=808080 data=seed forking=never", "8,293 ms"),
    quicksort("n=808080 data=seed forking=yes", "24,884 ms on one worker"),
    quicksort(
        "n=808080 data=seed forking=yes",
        "7,648 ms on all workers (95.2 s of processor time)",
    ),
];

/// The printed figures for one workload.
pub fn printed(workload: &str) -> impl Iterator<Item = &'static Printed> {
    PRINTED
        .iter()
        .filter(move |printed| printed.workload == workload)
}

/// The documents that print figures for one workload.
#[must_use]
pub fn sources(workload: &str) -> Vec<&'static Document> {
    let mut sources: Vec<&'static Document> = Vec::new();
    for printed in printed(workload) {
        if !sources
            .iter()
            .any(|source| source.letter == printed.document.letter)
        {
            sources.push(printed.document);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::workload;

    #[test]
    fn every_figure_names_a_workload_and_its_keys() {
        for printed in &PRINTED {
            let workload = workload::find(printed.workload).unwrap();
            let words: Vec<&str> = printed.params.split(' ').collect();
            let params = Params::parse(&words).unwrap().with("workers", 1);
            workload.check(&params).unwrap();
        }
    }

    #[test]
    fn series_grow_in_n() {
        for series in &SPAWN_SERIES {
            assert!(series.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
