//! PostgreSQL: a server of its own in the store's directory, on a socket there; a connection, and so a process of the
//! server, for every writer.
//!
//! The server is bound to the processors of this program, so that it shares them as the libraries do. It refuses to run
//! as root, so root starts it as the user `postgres`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::fail;
use postgres::{Client, Config, NoTls, Statement};

use crate::{Level, Record, Store, good};

/// How long the server may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// As many writers as the workload has at most, and one to count.
const CONNECTIONS: u32 = 1_100;

const CREATE: &str = "CREATE TABLE records (key bytea PRIMARY KEY, value bytea NOT NULL)";
const INSERT: &str = "INSERT INTO records SELECT * FROM unnest($1::bytea[], $2::bytea[])";

pub(crate) struct Postgresql {
    directory: PathBuf,
    server: Child,
}

/// The user as which the server runs, if this program runs as root.
fn other_user() -> Option<(u32, u32)> {
    let own = fs::metadata("/proc/self").ok()?.uid();
    let number = |option: &str| {
        let output = Command::new("id")
            .args([option, "postgres"])
            .output()
            .ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if own != 0 {
        return None;
    }
    let (Some(user), Some(group)) = (number("-u"), number("-g")) else {
        fail(
            "PostgreSQL refuses to run as root, and there is no user postgres: run this as another user.",
        )
    };
    Some((user, group))
}

/// A program of the server, which is seldom on the path.
fn program(name: &str, user: Option<(u32, u32)>) -> Command {
    let bindir = Command::new("pg_config").arg("--bindir").output();
    let bindir = bindir
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let path = bindir.map(|bindir| Path::new(bindir.trim()).join(name));
    let Some(path) = path.filter(|path| path.exists()) else {
        fail(&format!(
            "PostgreSQL's `{name}` is not there: install the server with apt-get install postgresql."
        ))
    };
    let mut command = Command::new(path);
    command.env("LC_ALL", "C").stdout(Stdio::null());
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

impl Postgresql {
    fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host_path(&self.directory)
            .user("bench")
            .dbname("postgres");
        config
    }

    fn connect(&self) -> Client {
        good(self.config().connect(NoTls))
    }

    /// The first connection, once the server accepts one.
    fn first_connection(&mut self) -> Client {
        let clock = Instant::now();
        loop {
            match self.config().connect(NoTls) {
                Ok(client) => return client,
                Err(error) if clock.elapsed() > PATIENCE => {
                    fail(&format!("PostgreSQL accepts no connection: {error}."))
                }
                Err(_) => {}
            }
            if let Ok(Some(status)) = self.server.try_wait() {
                fail(&format!("PostgreSQL has ended at its start: {status}."));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        // Its fast end: it closes all connections, and writes a checkpoint.
        let pid = self.server.id().to_string();
        let _gone_already = Command::new("kill").args(["-INT", &pid]).status();
        let _gone_already = self.server.wait();
    }
}

impl Store for Postgresql {
    type Writer<'store> = (Client, Statement);

    fn open(directory: &Path, level: Level) -> Option<Self> {
        let user = other_user();
        if let Some((user, group)) = user {
            good(chown(directory, Some(user), Some(group)));
        }
        good(fs::set_permissions(
            directory,
            fs::Permissions::from_mode(0o700),
        ));
        let data = directory.join("data");
        let mut initdb = program("initdb", user);
        initdb.args([
            "--username=bench",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            "--pgdata",
        ]);
        if !good(initdb.arg(&data).status()).success() {
            fail("PostgreSQL's initdb failed: see the message above.");
        }
        // Without fsync a commit is written and not synced: it survives the end of the server.
        let fsync = match level {
            Level::Buffered => "fsync=off",
            Level::Durable => "fsync=on",
        };
        let mut server = program("postgres", user);
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory)
            .args(["-h", "", "-c", fsync]);
        server.args(["-c", &format!("max_connections={CONNECTIONS}")]);
        server.args(["-c", "log_min_messages=panic"]);
        let mut store = Self {
            directory: directory.to_owned(),
            server: good(server.spawn()),
        };
        good(store.first_connection().batch_execute(CREATE));
        Some(store)
    }

    fn writer(&self) -> Self::Writer<'_> {
        let mut client = self.connect();
        let insert = good(client.prepare(INSERT));
        (client, insert)
    }

    fn commit((client, insert): &mut Self::Writer<'_>, records: &[Record]) {
        let (keys, values): (Vec<&[u8]>, Vec<&[u8]>) = records
            .iter()
            .map(|(key, value)| (&key[..], &value[..]))
            .unzip();
        good(client.execute(&*insert, &[&keys, &values]));
    }

    fn count(&self) -> usize {
        let row = good(
            self.connect()
                .query_one("SELECT count(*) FROM records", &[]),
        );
        row.get::<_, i64>(0) as usize
    }
}
