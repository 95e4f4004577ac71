//! A server in a process of its own: how it is started, what it costs, how it ends.
//!
//! It is called with the name of a server and `workers=N`, prints `port N`, serves at that port
//! of 127.0.0.1, and ends when its input does. So it also ends if the measuring program is killed.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a program needs besides its connections.
const OTHERS: u64 = 256;

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub struct Served {
    child: Child,
    /// Its input, which must stay open.
    _input: Option<ChildStdin>,
    /// Its address.
    pub address: SocketAddr,
}

impl Served {
    /// Starts `program`, a command with its first arguments, with these more, and waits until it listens.
    ///
    /// # Errors
    /// A sentence, if it cannot be started or ends without a port.
    pub fn start(program: &[String], more: &[String]) -> Result<Self, String> {
        let (name, arguments) = program
            .split_first()
            .ok_or("There is no server to start.")?;
        let mut child = Command::new(name)
            .args(arguments)
            .args(more)
            // Some of the rivals look for their keys there.
            .envs(more.iter().filter_map(|word| word.split_once('=')))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("The server '{name}' cannot be started: {error}."))?;
        let output = child.stdout.take().expect("its output was asked for");
        let mut served = Self {
            _input: child.stdin.take(),
            child,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
        };
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        let port = line
            .trim()
            .strip_prefix("port ")
            .and_then(|port| port.parse().ok());
        let (Ok(_), Some(port)) = (read, port) else {
            return Err(format!("The server '{name}' ended without naming a port."));
        };
        served.address.set_port(port);
        Ok(served)
    }

    /// The processor time that all threads of its processes have used, in steps of 10 ms.
    ///
    /// # Errors
    /// A sentence, if it has ended.
    pub fn processor_time(&self) -> Result<Duration, String> {
        self.processes().iter().map(|&id| processor_time(id)).sum()
    }

    /// The bytes that its processes hold in memory, without pages of files.
    ///
    /// # Errors
    /// A sentence, if it has ended.
    pub fn resident(&self) -> Result<u64, String> {
        self.processes().iter().map(|&id| resident(id)).sum()
    }

    /// Its own process, and those that it has started.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut at = 0;
        while let Some(&id) = all.get(at) {
            all.extend(children(id));
            at += 1;
        }
        all
    }
}

/// The processes that one has started. None if the system does not say.
fn children(id: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
    let of_list = |list: String| -> Vec<u32> {
        let ids = list.split_whitespace();
        ids.filter_map(|id| id.parse().ok()).collect()
    };
    lists.flat_map(of_list).collect()
}

fn processor_time(id: u32) -> Result<Duration, String> {
    let text = proc(id, "stat")?;
    // The name in brackets may contain anything.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    match (times.next(), times.next()) {
        (Some(Ok(user)), Some(Ok(system))) => {
            let hertz = rustix::param::clock_ticks_per_second();
            Ok(Duration::from_secs(user + system) / u32::try_from(hertz).unwrap_or(100))
        }
        _ => Err("This kernel does not report the processor time of a process.".to_owned()),
    }
}

fn resident(id: u32) -> Result<u64, String> {
    let text = proc(id, "smaps_rollup")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let bytes = kibibytes.map(|kibibytes: u64| kibibytes * 1024);
    bytes.ok_or_else(|| "This kernel does not report the memory of a process.".to_owned())
}

fn proc(id: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{id}/{file}");
    std::fs::read_to_string(&path).map_err(|error| format!("Cannot read {path}: {error}."))
}

impl Drop for Served {
    fn drop(&mut self) {
        // Its figures have been read by now. It may have ended on its own.
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Allows this program, and those that it starts, this many connections.
///
/// # Errors
/// A sentence that says what to do, if the system does not allow it.
pub fn allow_descriptors(connections: usize) -> Result<(), String> {
    let connections = connections as u64;
    // A server may keep an eighth of its descriptors for other things than connections.
    let least = connections + connections / 7 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= 2 * least) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < least {
        return Err(format!(
            "Not measured: {connections} connections take {least} descriptors, and a program may have \
             {most}. Raise the hard limit (ulimit -Hn)."
        ));
    }
    let raised = Rlimit {
        current: Some(most.min(2 * least).max(limit.current.unwrap_or(0))),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| format!("Cannot raise the limit of descriptors: {error}."))
}
