//! The course of measuring a server: start it, connect, send requests, and read what they cost.
//!
//! Server and clients are two processes; only the server's processor time and memory are counted. Both
//! share the processors, so the number of requests per second depends on the clients as much as on
//! the server.

use std::time::{Duration, Instant};

use super::clients::Clients;
use super::dialogue::Dialogue;
use super::measure::Figure;
use super::served::{Served, allow_descriptors};

/// How many of the idle connections must still be answered.
const SAMPLE: usize = 100;

/// A server, and the number of its clients.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server's command with its first arguments; see [`Served`].
    pub server: Vec<String>,
    /// Its number of workers.
    pub workers: usize,
    /// How many clients there are.
    pub connections: usize,
}

/// When the connections whose memory is measured are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// As they connect, a hundred at a time.
    InTurn,
    /// All together, when all have connected.
    AtOnce,
}

impl Asked {
    /// Reads the value of the key `asked`; without one, they are asked in turn.
    ///
    /// # Errors
    /// A sentence, if it is neither of the two.
    pub fn parse(word: Option<&str>) -> Result<Self, String> {
        match word {
            None | Some("in-turn") => Ok(Self::InTurn),
            Some("at-once") => Ok(Self::AtOnce),
            Some(word) => Err(format!("asked={word} is neither in-turn nor at-once.")),
        }
    }
}

impl Load {
    fn start(&self, dialogue: Dialogue) -> Result<(Served, Clients), String> {
        allow_descriptors(self.connections)?;
        let more = [
            dialogue.server().to_owned(),
            format!("workers={}", self.workers),
        ];
        let served = Served::start(&self.server, &more)?;
        let length = check_first(&served, dialogue)?;
        Ok((served, Clients::new(dialogue, length)?))
    }

    /// The cost of `requests` requests; each connection has at most one in flight.
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn busy(&self, dialogue: Dialogue, requests: usize) -> Result<Vec<Figure>, String> {
        let (served, mut clients) = self.start(dialogue)?;
        clients.connect(served.address, self.connections)?;
        clients.talk(0..self.connections, requests / 10)?;
        let before = served.processor_time()?;
        let clock = Instant::now();
        let mut times = clients.talk(0..self.connections, requests)?;
        let elapsed = clock.elapsed();
        let taken = served.processor_time()?.saturating_sub(before);
        times.sort_unstable();
        let requests = requests as f64;
        Ok(vec![
            ("cpu_s_per_million", 1e6 * taken.as_secs_f64() / requests),
            ("requests_per_s", requests / elapsed.as_secs_f64()),
            ("p99_us", 1e6 * times[times.len() * 99 / 100].as_secs_f64()),
        ])
    }

    /// The memory of a connection that was answered once and has been idle for `rest`.
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn idle(
        &self,
        dialogue: Dialogue,
        rest: Duration,
        asked: Asked,
    ) -> Result<Vec<Figure>, String> {
        let (served, mut clients) = self.start(dialogue)?;
        clients.connect(served.address, 1)?;
        let before = served.resident()?;
        if asked == Asked::AtOnce {
            clients.join(served.address, 1 + self.connections)?;
            clients.talk(1..1 + self.connections, self.connections)?;
        }
        clients.connect(served.address, 1 + self.connections)?;
        #[expect(clippy::disallowed_methods, reason = "memory is measured after a rest")]
        std::thread::sleep(rest);
        let grown = served.resident()? as f64 - before as f64;
        let sample = SAMPLE.min(self.connections);
        clients.talk(0..sample, sample)?;
        Ok(vec![(
            "bytes_per_connection",
            grown / self.connections as f64,
        )])
    }
}

/// Checks each line of a first answer; later there is no time to do so. Returns its length.
fn check_first(served: &Served, dialogue: Dialogue) -> Result<usize, String> {
    let answer = Clients::ask_once(served.address, dialogue)?;
    match dialogue.accepts_each_line(&answer) {
        true => Ok(answer.len()),
        false => {
            let shown = String::from_utf8_lossy(&answer);
            Err(format!(
                "The server's answer is not what it should be: {shown:?}"
            ))
        }
    }
}
