//! Files that never answer stop no other file and no name.

use std::{
    fs::OpenOptions,
    io::{Read, Write},
    path::{Path, PathBuf},
    pin::Pin,
    process::Command,
};

use futures_util::FutureExt;
use weald_kernel::Runtime;
use weald_net::{
    ReadEnd,
    fs::{self, File},
    lookup_host,
};

use crate::{
    reports::{collect_reports, reports},
    tools::{until, watch},
};

/// A FIFO in a folder of its own, which is removed on drop.
pub(super) struct Fifo {
    folder: PathBuf,
    pub(super) path: PathBuf,
}

impl Fifo {
    pub(super) fn new(name: &str) -> Fifo {
        let folder = format!("weald-fifo-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("fifo");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Fifo { folder, path }
    }

    /// Both ends, without waiting.
    fn open_both(&self) -> std::fs::File {
        let both = OpenOptions::new().read(true).write(true).open(&self.path);
        both.unwrap()
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ignored = std::fs::remove_dir_all(&self.folder);
    }
}

/// Far more than the threads that count, and fewer than the operations that may be held.
const MANY: usize = 600;

fn others_go_on(runtime: &Runtime) {
    runtime.block_on(async {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(!fs::read(&manifest).await.unwrap().is_empty());
        assert!(fs::metadata(&manifest).await.unwrap().is_file());
        assert!(!lookup_host("localhost", 80).await.unwrap().is_empty());
    });
}

#[test]
fn fifos_that_nobody_writes_stop_no_file_and_no_name() {
    let _watch = watch();
    let fifo = Fifo::new("unwritten");
    let runtime = Runtime::builder().workers(2).blocking_threads(4);
    let runtime = runtime.build().unwrap();
    let readers: Vec<_> = (0..MANY)
        .map(|_| runtime.spawn(fs::read(fifo.path.clone())))
        .collect();
    until(|| runtime.metrics().blocking >= 4);
    others_go_on(&runtime);
    until(|| runtime.metrics().blocking == MANY);
    let both = fifo.open_both();
    until(|| runtime.metrics().blocking == 0);
    drop(both);
    for reader in readers {
        assert_eq!(runtime.block_on(reader).unwrap().unwrap(), b"");
    }
}

/// Two threads could hold two of the reads, and the others would be errors.
#[test]
fn a_fifo_whose_reader_is_slow_is_written_without_a_thread() {
    let _watch = watch();
    let fifo = Fifo::new("written");
    let runtime = Runtime::builder().workers(1).blocking_threads(1);
    let runtime = runtime.held_operations(1).build().unwrap();
    let mut both = fifo.open_both();
    // More than a FIFO holds.
    let bytes = vec![b'x'; 1 << 20];
    let (path, content) = (fifo.path.clone(), bytes.clone());
    let written = runtime.spawn(async move { fs::write(&path, content).await });
    let others = fifo.path.clone();
    let also = runtime.spawn(async move { fs::write(&others, "y").await });
    others_go_on(&runtime);
    let mut read = vec![0; bytes.len() + 1];
    both.read_exact(&mut read).unwrap();
    runtime.block_on(written).unwrap().unwrap();
    runtime.block_on(also).unwrap().unwrap();
    let ys = read.iter().filter(|byte| **byte == b'y').count();
    assert_eq!(ys, 1);
}

#[test]
fn a_write_to_a_fifo_whose_reader_is_gone_names_it() {
    let _watch = watch();
    let fifo = Fifo::new("gone");
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let both = fifo.open_both();
    let mut options = OpenOptions::new();
    options.write(true);
    let opened = File::open_with(&fifo.path, options);
    let writer = runtime.block_on(opened).unwrap();
    drop(both);
    let error = runtime.block_on(writer.write_all("x")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    let text = error.to_string();
    assert!(text.contains(fifo.path.to_str().unwrap()), "{text}");
}

#[test]
fn an_open_fifo_is_read_and_written_without_a_thread() {
    let _watch = watch();
    let fifo = Fifo::new("open");
    let runtime = Runtime::builder().workers(1).blocking_threads(1);
    let runtime = runtime.held_operations(1).build().unwrap();
    let both = fifo.open_both();
    let open = || File::open(&fifo.path);
    let files: Vec<_> = (0..8).map(|_| runtime.block_on(open()).unwrap()).collect();
    let readers: Vec<_> = files
        .into_iter()
        .map(|file| runtime.spawn(async move { file.read(1 << 40).await }))
        .collect();
    others_go_on(&runtime);
    let writer = runtime.block_on(async {
        let mut options = OpenOptions::new();
        options.write(true);
        File::open_with(&fifo.path, options).await.unwrap()
    });
    runtime.block_on(writer.write_all("x")).unwrap();
    drop((writer, both));
    let mut read: Vec<_> = readers
        .into_iter()
        .map(|reader| runtime.block_on(reader).unwrap().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read.pop().unwrap(), b"x");
    assert!(read.iter().all(Vec::is_empty), "{read:?}");
}

#[test]
fn an_operation_on_a_file_that_no_job_asked_for_is_named_with_the_line_that_did() {
    let _watch = watch();
    collect_reports();
    let fifo = Fifo::new("asked");
    let mut both = None;
    let runtime = Runtime::builder().workers(1).build().unwrap();
    std::thread::scope(|scope| {
        let (runtime, path) = (&runtime, &fifo.path);
        let mut lines = Vec::new();
        let mut ask = |line: u32, asked: Pin<Box<dyn Future<Output = ()> + Send>>| {
            lines.push(line);
            scope.spawn(move || runtime.block_on(asked));
        };
        let at = || path.clone();
        ask(line!(), Box::pin(fs::read(at()).map(drop)));
        ask(line!(), Box::pin(fs::read_to_string(at()).map(drop)));
        ask(line!(), Box::pin(File::open(at()).map(drop)));
        ask(line!(), Box::pin(ReadEnd::open(at()).map(drop)));
        for line in lines {
            let by =
                format!("a thread outside of any job, at net/tests/outside/blocked.rs:{line}:");
            let is_named = |report: &crate::reports::Report| report.text.contains(&by);
            until(|| reports("weald::blocking", "fifo").iter().any(is_named));
        }
        // The opened file has no end before this one has.
        let writer = both.insert(fifo.open_both());
        until(|| runtime.metrics().blocking == 0);
        let file = File::from_std(writer.try_clone().unwrap());
        let (line, read) = (line!(), async move { file.read(1).await.map(drop) });
        let read = scope.spawn(move || runtime.block_on(read).unwrap());
        let by = format!("a thread outside of any job, at net/tests/outside/blocked.rs:{line}:");
        let is_named = |report: &crate::reports::Report| report.text.contains(&by);
        until(|| {
            reports("weald::blocking", "descriptor")
                .iter()
                .any(is_named)
        });
        // The others read the same FIFO, and may take what this one waits for.
        while !read.is_finished() {
            writer.write_all(b"x").unwrap();
            std::thread::yield_now();
        }
        read.join().unwrap();
        both = None;
    });
}
