//! The benchmark laboratory: the workloads that Weald is judged by, the same programs on its rivals, and the
//! way from raw figures to a table, a stream of records and a page.
//!
//! The modules are grouped in layers, the lowest first; a module imports only from its own layer and those
//! above it in this list. To follow a bench from start to end, read `bench`.
//!
//! Every measured program, Weald's own included, is a fresh operating-system process that obeys
//! one protocol (`bench_one`), so that no system profits from what another one warmed up.

// The values that everything else passes on: names, parameters, metrics and errors.
pub mod build_info;
pub mod error;
pub mod figure;
pub mod metric;
pub mod nearest;
pub mod params;
pub mod stats;

// The programs that Weald and its rivals share.
pub mod programs;

// What the runtime reports while it is measured.
pub mod reports;

// What is measured: the workloads on Weald, and the measured program that runs one of them.
pub mod bench_one;
pub mod limit;
pub mod serve;
pub mod serve_board;
pub mod workload;

// The background of the figures: the machine, and what the source documents printed.
pub mod documents;
pub mod machine;
pub mod processor_time;

// Child processes: starting them, waiting for them, stopping them.
pub mod child;
pub mod descendants;

// What is run: rows and their sizes, and the systems that run them.
pub mod plan;
pub mod rivals;
pub mod system;

// The run itself: the systems in turns, row by row, and its time.
pub mod alternate;
pub mod bench;
pub mod time_budget;

// The demo of the promise, which measures nothing that is compared.
pub mod demo;

// The results: comparisons, and the forms they are shown in.
pub mod compare;
pub mod glance;
pub mod record;
pub mod report;
pub mod table;
