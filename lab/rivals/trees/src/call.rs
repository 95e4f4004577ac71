//! Reads the arguments of a tree workload. Wrong ones end the program with exit code 2.

use std::collections::BTreeMap;

use common::bad_usage;

/// How many children the nodes of each level have, from the root downwards.
pub(crate) type Shape = &'static [usize];

const SHAPES: [(usize, Shape); 5] = [
    (1, &[]),
    (100, &[3, 4, 7]),
    (156, &[5, 5, 5]),
    (10_005, &[4, 4, 4, 5, 5, 5]),
    (810_156, &[5, 5, 5, 5, 5, 6, 6, 6]),
];

/// What to measure, and on how many threads.
pub(crate) struct Call {
    pub(crate) what: What,
    pub(crate) workers: usize,
}

/// A workload with its parameters.
pub(crate) enum What {
    Read {
        shape: Shape,
        tasks: usize,
        visit: Visit,
    },
    Write {
        shape: Shape,
        trees: usize,
        mode: Mode,
    },
    Hot {
        shape: Shape,
        writers: usize,
        commits: usize,
        /// How many of the newest versions are kept.
        kept: usize,
    },
    Append {
        children: usize,
        commits: usize,
    },
    Snapshot {
        shape: Shape,
        reads: usize,
        held: Held,
    },
}

/// What a reader does at each node.
#[derive(Clone, Copy)]
pub(crate) enum Visit {
    Count,
    Attribute,
}

/// How a tree is written.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// From its leaves to its root.
    Bulk,
    /// Node by node, in place as far as nothing else shares the tree.
    Edit,
    /// Node by node, each of them published.
    Commits,
}

/// How a reader holds the newest version.
#[derive(Clone, Copy)]
pub(crate) enum Held {
    Borrowed,
    Owned,
}

impl Call {
    pub(crate) fn parse(arguments: &[String], version: &str) -> Self {
        let Some((workload, pairs)) = arguments.split_first() else {
            bad_usage(
                "No workload is given: call it as WORKLOAD key=value ..., or with --version.",
            );
        };
        if workload == "--version" {
            println!("{version}");
            std::process::exit(0);
        }
        let mut keys = Keys::read(pairs);
        let what = keys.what(workload);
        let workers = keys.count("workers");
        if let Some(key) = keys.0.keys().next() {
            bad_usage(&format!(
                "The key `{key}` does not belong here: leave it out."
            ));
        }
        Self { what, workers }
    }
}

struct Keys(BTreeMap<String, String>);

impl Keys {
    fn read(pairs: &[String]) -> Self {
        let read = |pair: &String| {
            let (key, value) = pair.split_once('=').unwrap_or_else(|| {
                bad_usage(&format!(
                    "The argument `{pair}` is not of the form key=value."
                ))
            });
            (key.to_owned(), value.to_owned())
        };
        Self(pairs.iter().map(read).collect())
    }

    fn what(&mut self, workload: &str) -> What {
        match workload {
            "tree-read" => What::Read {
                shape: self.shape(),
                tasks: self.count("tasks"),
                visit: match self.0.contains_key("what") {
                    false => Visit::Count,
                    true => self.word(
                        "what",
                        &[("count", Visit::Count), ("attribute", Visit::Attribute)],
                    ),
                },
            },
            "tree-write" => What::Write {
                shape: self.shape(),
                trees: self.count("trees"),
                mode: self.word(
                    "mode",
                    &[
                        ("bulk", Mode::Bulk),
                        ("edit", Mode::Edit),
                        ("commits", Mode::Commits),
                    ],
                ),
            },
            "hot-tree" => {
                self.word("kind", &[("threads", ())]);
                What::Hot {
                    shape: self.shape(),
                    writers: self.count("writers"),
                    commits: self.count("commits"),
                    kept: self.word("retention", &[("kept", 1_000), ("none", 0)]),
                }
            }
            "append" => What::Append {
                children: self.count("children"),
                commits: self.count("commits"),
            },
            "snapshot" => What::Snapshot {
                shape: self.shape(),
                reads: self.count("reads"),
                held: self.word(
                    "what",
                    &[("borrowed", Held::Borrowed), ("owned", Held::Owned)],
                ),
            },
            _ => bad_usage(&format!(
                "The workload `{workload}` is unknown: see the README."
            )),
        }
    }

    fn shape(&mut self) -> Shape {
        let nodes = self.count("nodes");
        let known = SHAPES.iter().find(|(known, _)| *known == nodes);
        known.map_or_else(
            || bad_usage("The key `nodes` takes 1, 100, 156, 10005 or 810156."),
            |(_, shape)| shape,
        )
    }

    fn count(&mut self, key: &str) -> usize {
        match self.take(key).parse() {
            Ok(number) if number > 0 => number,
            _ => bad_usage(&format!(
                "The key `{key}` takes a whole number of at least 1."
            )),
        }
    }

    fn word<T: Copy>(&mut self, key: &str, known: &[(&str, T)]) -> T {
        let value = self.take(key);
        let found = known.iter().find(|(word, _)| *word == value);
        found.map_or_else(
            || bad_usage(&format!("This rival does not know {key}={value}.")),
            |(_, meant)| *meant,
        )
    }

    fn take(&mut self, key: &str) -> String {
        self.0.remove(key).unwrap_or_else(|| {
            bad_usage(&format!(
                "The key `{key}` is missing: give it as {key}=VALUE."
            ))
        })
    }
}
