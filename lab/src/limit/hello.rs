//! `hello`: bare epoll loops, one thread for each worker, that answer without reading the request.

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::dialogue::Dialogue;
use crate::programs::epoll;
use crate::workload::network::{load_of, this_program};

/// The name of the server that the clients start.
pub(super) const SERVER: &str = "serve-hello";

/// Measures the server that this program is when it is called with the word `system`.
pub(super) fn run(system: &str, params: &Params) -> Result<Vec<Metric>, Error> {
    let mut server = this_program()?;
    server.push(system.to_owned());
    let figures = load_of(server, params)?.busy(Dialogue::Hello, params.count("requests")?);
    let figures = figures.map_err(Error::workload)?;
    let metric = |(name, value)| Metric::new(name, value);
    Ok(figures.into_iter().map(metric).collect())
}

/// Serves until stdin ends, and then ends the program.
pub(super) fn serve(params: &Params) -> Result<(), Error> {
    let failed = |error: io::Error| Error::workload(format!("The server cannot serve: {error}."));
    let workers = params.count("workers")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    println!("port {}", listener.local_addr().map_err(failed)?.port());
    std::thread::spawn(|| {
        let _end = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    epoll::serve(Dialogue::Hello, listener, workers).map_err(failed)
}
