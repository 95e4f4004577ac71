//! nginx, with the greeting in its configuration: one process for each worker, all listening on the same port.
//!
//! Each is a program of this kind first, which asks the system to be ended with its parent and then becomes nginx. It
//! listens itself: on a listener that it is handed as by its own predecessor (the variable `NGINX`), a single process
//! of nginx 1.22 answers nobody. The configuration is in a temporary folder, which is removed when all have read it.

use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::fail;
use common::programs::dialogue::{GREETING, GREETING_TYPE};
use rustix::process::{Resource, Signal, getrlimit, set_parent_process_death_signal};

/// The first argument of a process that becomes nginx. The second is its folder.
pub(crate) const WORKER: &str = "nginx-worker";
/// How long nginx may take to read its configuration.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What nginx says of itself.
pub(crate) fn version() -> String {
    let Ok(said) = Command::new("nginx").arg("-v").output() else {
        fail("nginx cannot be started: install it with apt-get install nginx-light.");
    };
    let said = String::from_utf8_lossy(&said.stderr);
    said.trim().replace("nginx version: ", "")
}

/// Starts nginx at a free port, and tells that port when it answers there.
pub(crate) fn serve(workers: usize) -> ! {
    let (listener, port) = crate::listen();
    drop(listener);
    let folder = std::env::temp_dir().join(format!("weald-nginx-{}", std::process::id()));
    let started = start_in(&folder, port, workers);
    // They have read it, or never will.
    let _removed = std::fs::remove_dir_all(&folder);
    if let Err(error) = started {
        fail(&format!("nginx cannot be started: {error}."));
    }
    crate::tell(port);
    loop {
        std::thread::park();
    }
}

fn start_in(folder: &Path, port: u16, workers: usize) -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    let mut notes = Vec::new();
    for worker in 0..workers {
        let folder = folder.join(worker.to_string());
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("nginx.conf"), configuration(port))?;
        Command::new(&program).arg(WORKER).arg(&folder).spawn()?;
        notes.push(folder.join("nginx.pid"));
    }
    let begun = Instant::now();
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    while !notes.iter().all(|note| note.exists()) || !listens() {
        if begun.elapsed() > TIME_LIMIT {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Becomes nginx, which ends with the process that started this one.
pub(crate) fn become_worker(folder: Option<&String>) -> ! {
    let Some(folder) = folder else {
        fail("A worker of nginx is started by a server.");
    };
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        fail("The system does not end a process with its parent.");
    }
    let error = Command::new("nginx")
        .args(["-e", "stderr", "-c", "nginx.conf", "-p"])
        .arg(folder)
        .exec();
    fail(&format!("nginx cannot be started: {error}."));
}

/// A process that serves by itself. It logs nothing, and keeps its connections.
fn configuration(port: u16) -> String {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = most.min(1 << 16);
    let greeting = GREETING.trim_end();
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections {most}; }}
http {{
    access_log off;
    server_tokens off;
    default_type {GREETING_TYPE};
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} reuseport;
        location / {{ return 200 '{greeting}\n'; }}
    }}
}}
"
    )
}
