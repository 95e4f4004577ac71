//! `echo`, `hello` and `idle-connections`: what does a server cost per request, and per connection?
//!
//! This process is the clients. The server is this same program, called with another workload name.

use std::time::Duration;

use super::definition::Workload;
use super::forking::metrics;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::dialogue::Dialogue;
use crate::programs::load::{Asked, Load};

const BUSY: &[&str] = &["cpu_s_per_million", "requests_per_s", "p99_us"];
const REMARK: &str = "cpu_s_per_million is the server's own. The clients are another process on the same \
                      processors, so requests_per_s and p99_us depend on them too.";

pub(super) const ECHO: Workload = Workload {
    name: "echo",
    question: "What does it cost to send back the bytes that arrive on a TCP connection?",
    keys: &["connections", "requests"],
    optional: &[],
    metrics: BUSY,
    explaining: &[],
    remark: REMARK,
    run: |params| busy(Dialogue::Echo, params),
};

pub(super) const HELLO: Workload = Workload {
    name: "hello",
    question: "What does an HTTP request with a short answer cost?",
    keys: &["connections", "requests"],
    optional: &[],
    metrics: BUSY,
    explaining: &[],
    remark: REMARK,
    run: |params| busy(Dialogue::Hello, params),
};

pub(super) const IDLE: Workload = Workload {
    name: "idle-connections",
    question: "How much memory does an idle HTTP connection hold?",
    keys: &["connections", "rest_ms"],
    optional: &["asked"],
    metrics: &["bytes_per_connection"],
    explaining: &[],
    remark: "Each connection was answered once, in turn or all at once, and then idle for rest_ms. The figure is the growth of the \
             server's resident memory; what the kernel holds for a socket is not in it.",
    run: idle,
};

fn busy(dialogue: Dialogue, params: &Params) -> Result<Vec<Metric>, Error> {
    metrics(load(params)?.busy(dialogue, params.count("requests")?))
}

fn idle(params: &Params) -> Result<Vec<Metric>, Error> {
    let rest = Duration::from_millis(params.number("rest_ms")? as u64);
    let asked = Asked::parse(params.get("asked")).map_err(Error::Usage)?;
    metrics(load(params)?.idle(Dialogue::Hello, rest, asked))
}

/// The command that starts this program's servers.
pub(crate) fn this_program() -> Result<Vec<String>, Error> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| Error::workload(format!("Cannot find this program: {error}.")))?;
    Ok(vec![
        program.to_string_lossy().into_owned(),
        "bench-one".to_owned(),
    ])
}

fn load(params: &Params) -> Result<Load, Error> {
    load_of(this_program()?, params)
}

/// A load for the server that is started with this command.
pub(crate) fn load_of(server: Vec<String>, params: &Params) -> Result<Load, Error> {
    Ok(Load {
        server,
        workers: super::definition::workers(params)?,
        connections: params.count("connections")?,
    })
}
