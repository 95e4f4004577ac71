//! Pipes and inherited descriptors, as streams.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
    pin::pin,
    process::{Command, Stdio},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{AsyncReadExt, AsyncWriteExt};
use weald_kernel::{JoinHandle, Runtime, Wait, spawn, yield_now};
use weald_net::{LineTooLong, Lines, ReadEnd, UnixStream, WriteEnd, fs::File, pipe};
use weald_sync::{Either, always, one_of, select};

use crate::{
    outside::blocked::Fifo,
    tools::{on_each, until, watch},
};

fn is_nonblocking(descriptor: RawFd) -> bool {
    const NONBLOCK: u32 = 0o4000;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    u32::from_str_radix(flags.unwrap().trim(), 8).unwrap() & NONBLOCK != 0
}

/// A runtime with one worker, which is not taken from a job that blocks it: then nothing else runs.
fn patient() -> Runtime {
    let runtime = Runtime::builder().workers(1);
    let runtime = runtime.stuck_after(Duration::from_secs(3600));
    runtime.build().unwrap()
}

/// Everything that was spawned before has run as far as it can, and others run.
fn others_run(runtime: &Runtime) {
    for _ in 0..100 {
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
    }
}

/// Polls once.
fn poll<R>(future: impl Future<Output = R>) -> Poll<R> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Two readers share a pipe, as the programs of a shell share their input: each byte goes to one, and the other waits.
#[test]
fn a_shared_descriptor_is_read_in_its_mode() {
    let _watch = watch();
    let runtime = patient();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let other = reader.try_clone().unwrap();
    let (raw, other) = (reader.as_raw_fd(), OwnedFd::from(other));
    let jobs = [OwnedFd::from(reader), other].map(|end| {
        runtime.spawn(async move {
            let mut end = ReadEnd::from_fd(end).unwrap();
            let mut byte = [0];
            assert_eq!(end.read(&mut byte).await.unwrap(), 1);
            (byte[0], end)
        })
    });
    others_run(&runtime);
    writer.write_all(b"a").unwrap();
    until(|| jobs.iter().any(JoinHandle::is_finished));
    others_run(&runtime);
    assert!(!is_nonblocking(raw));
    assert_eq!(runtime.metrics().blocking, 0);
    writer.write_all(b"b").unwrap();
    let mut bytes = jobs.map(|job| runtime.block_on(job).unwrap().0);
    bytes.sort_unstable();
    assert_eq!(&bytes, b"ab");
}

/// The system cannot be asked to read a terminal without waiting, so a thread reads it, but only when there is a line.
#[test]
fn a_terminal_holds_no_thread_while_nobody_types() {
    let _watch = watch();
    let runtime = patient();
    let mut options = fs::OpenOptions::new();
    // The side of the terminal's window; what is written there is echoed.
    let window = options.read(true).write(true).open("/dev/ptmx").unwrap();
    let (reads, raw) = (window.try_clone().unwrap(), window.as_raw_fd());
    let job = runtime.spawn(async move {
        let mut lines = ReadEnd::from_fd(reads.into()).unwrap().lines();
        [lines.next().await.unwrap(), lines.next().await.unwrap()]
    });
    for line in ["one\n", "two\n"] {
        others_run(&runtime);
        until(|| runtime.metrics().blocking == 0);
        others_run(&runtime);
        assert_eq!(runtime.metrics().blocking, 0);
        let window = window.try_clone().unwrap();
        let writes = runtime.spawn(async move {
            let mut end = WriteEnd::from_fd(window.into()).unwrap();
            end.write_all(line.as_bytes()).await.unwrap();
        });
        runtime.block_on(writes).unwrap();
    }
    let lines = runtime.block_on(job).unwrap();
    assert_eq!(lines.map(Option::unwrap), ["one", "two"]);
    assert!(!is_nonblocking(raw));
}

#[test]
fn a_shared_descriptor_is_written_in_its_mode() {
    on_each(|runtime| {
        let (reader, writer) = std::io::pipe().unwrap();
        let raw = writer.as_raw_fd();
        let writes = runtime.spawn(async move {
            let mut end = WriteEnd::from_fd(writer.into()).unwrap();
            end.write_all(&[7; 1 << 20]).await.unwrap();
            assert!(!is_nonblocking(raw));
        });
        let reads = runtime.spawn(async move {
            let mut end = ReadEnd::from_fd(reader.into()).unwrap();
            end.read_to_end().await.unwrap().len()
        });
        runtime.block_on(writes).unwrap();
        assert_eq!(runtime.block_on(reads).unwrap(), 1 << 20);
    });
}

/// A regular file has no readiness, and this file of the system has it but can be read on a thread only.
#[test]
fn what_cannot_be_read_through_the_reactor_is_read_on_a_thread() {
    on_each(|runtime| {
        for path in [
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "/proc/self/mounts",
        ] {
            let file = fs::File::open(path).unwrap();
            let read = runtime.spawn(async move {
                let mut end = ReadEnd::from_fd(file.into()).unwrap();
                end.read_to_end().await.unwrap()
            });
            assert!(runtime.block_on(read).unwrap() == fs::read(path).unwrap());
        }
        let path = std::env::temp_dir().join(format!("weald-written-{}", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        let write = runtime.spawn(async move {
            let mut end = WriteEnd::from_fd(file.into()).unwrap();
            end.write_all(&[8; 100_000]).await.unwrap();
            AsyncWriteExt::write_all(&mut end, b"buffered")
                .await
                .unwrap();
            end.close().await.unwrap();
            assert_eq!(
                end.write(b"x").await.unwrap_err().kind(),
                ErrorKind::NotConnected
            );
        });
        runtime.block_on(write).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 100_008);
        fs::remove_file(&path).unwrap();
    });
}

#[test]
fn a_pipe_transfers_more_than_it_holds_and_ends() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (mut reader, mut writer) = pipe().unwrap();
            let writes = spawn(async move { writer.write_all(&[1; 1 << 20]).await.unwrap() });
            let mut first = [0; 100];
            AsyncReadExt::read_exact(&mut reader, &mut first)
                .await
                .unwrap();
            assert_eq!(reader.read_to_end().await.unwrap().len() + 100, 1 << 20);
            writes.await.unwrap();
            let (reader, mut writer) = pipe().unwrap();
            drop(reader);
            let broken = writer.write(b"x").await.unwrap_err();
            assert_eq!(broken.kind(), ErrorKind::BrokenPipe);
        });
    });
}

#[test]
fn a_read_that_is_dropped_or_not_chosen_loses_nothing() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (mut reader, mut writer) = pipe().unwrap();
            let mut buffer = [0; 8];
            assert!(poll(reader.read(&mut buffer)).is_pending());
            writer.write_all(b"kept").await.unwrap();
            let mut lost = 0;
            for _ in 0..10 {
                let chosen = one_of((reader.read(&mut buffer), always(()))).await;
                match chosen {
                    Either::First(count) => {
                        assert_eq!(count.unwrap(), 4);
                        writer.write_all(b"kept").await.unwrap();
                    }
                    Either::Rest(_) => lost += 1,
                }
            }
            assert!(lost <= 10);
            assert_eq!(reader.read(&mut buffer).await.unwrap(), 4);
            assert_eq!(&buffer[..4], b"kept");
        });
    });
}

#[test]
fn a_child_gets_a_pipe_in_blocking_mode() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (reader, mut writer) = pipe().unwrap();
            let input = reader.into_fd().unwrap();
            assert!(!is_nonblocking(input.as_raw_fd()));
            let (output, theirs) = pipe().unwrap();
            let mut child = Command::new("cat")
                .stdin(Stdio::from(input))
                .stdout(Stdio::from(theirs.into_fd().unwrap()))
                .spawn()
                .unwrap();
            writer.write_all(b"one\ntwo\n").await.unwrap();
            drop(writer);
            let mut lines = output.lines();
            assert_eq!(lines.next().await.unwrap().unwrap(), "one");
            assert_eq!(lines.next().await.unwrap().unwrap(), "two");
            assert_eq!(lines.next().await.unwrap(), None);
            child.wait().unwrap();
        });
    });
}

#[test]
fn the_two_ends_of_a_fifo_open_together() {
    let fifo = Fifo::new("ends");
    on_each(|runtime| {
        let path = fifo.path.clone();
        let reads = runtime.spawn(async move {
            let mut lines = ReadEnd::open(path).await.unwrap().lines();
            lines.next().await.unwrap()
        });
        runtime.block_on(async {
            let mut end = WriteEnd::open(&fifo.path).await.unwrap();
            end.write_all(b"through").await.unwrap();
        });
        assert_eq!(runtime.block_on(reads).unwrap().unwrap(), "through");
    });
}

#[test]
fn lines_are_whole_also_after_a_wait_that_was_dropped() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (one, other) = UnixStream::pair().unwrap();
            let mut lines = other.lines();
            one.write_all(b"ha").await.unwrap();
            other.readable().await.unwrap();
            assert!(poll(lines.next()).is_pending());
            one.write_all(b"lf\r\n\nlast").await.unwrap();
            let half = lines.next().await.unwrap().unwrap();
            assert_eq!(half, "half");
            assert!(
                half.capacity() < 64,
                "a line keeps {} bytes",
                half.capacity()
            );
            assert_eq!(lines.next().await.unwrap().unwrap(), "");
            drop(one);
            assert_eq!(lines.next().await.unwrap().unwrap(), "last");
            assert_eq!(lines.next().await.unwrap(), None);
        });
    });
}

/// All have a line in each choice. Those of the streams that are not chosen stay.
#[test]
fn a_choice_between_streams_of_lines_loses_none() {
    const LINES: usize = 300;
    on_each(|runtime| {
        runtime.block_on(async {
            let text: String = (0..LINES).map(|number| format!("{number}\n")).collect();
            let (mut one, mut other) = (Lines::new(text.as_bytes()), Lines::new(text.as_bytes()));
            let mut taken = [0, 0];
            while taken != [LINES, LINES] {
                let (of, line) = select! {
                    line = one.next() => (0, line),
                    line = other.next() => (1, line),
                };
                if let Some(line) = line.unwrap() {
                    assert_eq!(line, taken[of].to_string());
                    taken[of] += 1;
                }
            }
        });
    });
}

/// The buffer stays small while a line that is too long passes.
#[test]
fn a_line_that_is_too_long_is_an_error_and_the_next_one_is_read() {
    on_each(|runtime| {
        runtime.block_on(async {
            for length in [11, 12, 100_000] {
                let text = format!("{}\r\n0123456789\r\n\u{fffd}\n", "x".repeat(length));
                let mut bytes = text.into_bytes();
                bytes.extend(b"\xff\n");
                let mut lines = Lines::new(&bytes[..]).most(10);
                let error = lines.next().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidData);
                let inner: &LineTooLong = error.get_ref().unwrap().downcast_ref().unwrap();
                assert_eq!(inner.most, 10);
                assert_eq!(lines.next().await.unwrap().unwrap(), "0123456789");
                assert_eq!(lines.next().await.unwrap().unwrap(), "\u{fffd}");
                let error = lines.next().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidData);
                assert_eq!(lines.next_bytes().await.unwrap(), None);
            }
        });
    });
}

/// Not a test: the child of the next one, which reads real standard input.
#[test]
#[ignore = "the test below starts it"]
fn child_that_counts_its_input() {
    let count = async {
        let mut lines = weald_net::stdin().unwrap().lines();
        let mut count = 0;
        while lines.next().await.unwrap().is_some() {
            count += 1;
        }
        let text = format!("counted {count}\n");
        weald_net::stdout()
            .unwrap()
            .write_all(text.as_bytes())
            .await
            .unwrap();
    };
    count.wait();
}

#[test]
fn standard_input_is_read_from_a_pipe_and_from_a_file() {
    let _watch = watch();
    let path = std::env::temp_dir().join(format!("weald-input-{}", std::process::id()));
    fs::write(&path, "1\n2\n3\n").unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"1\n2\n3\n").unwrap();
    drop(writer);
    for input in [
        Stdio::from(reader),
        Stdio::from(fs::File::open(&path).unwrap()),
    ] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("outside::pipes::child_that_counts_its_input")
            .stdin(input)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(output.contains("counted 3"), "{output}");
    }
    fs::remove_file(&path).unwrap();
}

/// As a shell's terminal that another program has left non-blocking. Its mode stays as it is.
#[test]
fn a_file_that_is_a_non_blocking_pipe_is_read_and_written_whole() {
    const LENGTH: usize = 1 << 20;
    on_each(|runtime| {
        let (reader, writer) = std::io::pipe().unwrap();
        let ends = [OwnedFd::from(reader), OwnedFd::from(writer)];
        let raw = ends.each_ref().map(|end| {
            rustix::io::ioctl_fionbio(end, true).unwrap();
            end.as_raw_fd()
        });
        let [reader, writer] = ends.map(|end| File::from_std(end.into()));
        let first = runtime.spawn({
            let reader = reader.clone();
            async move { reader.read(5).await }
        });
        until(|| runtime.metrics().blocking == 1);
        runtime.block_on(async {
            writer.write_all("first").await.unwrap();
            assert_eq!(first.await.unwrap().unwrap(), b"first");
            let rest = spawn(async move { reader.read_to_end().await });
            writer.write_all(vec![7; LENGTH]).await.unwrap();
            assert!(raw.into_iter().all(is_nonblocking));
            drop(writer);
            assert_eq!(rest.await.unwrap().unwrap(), vec![7; LENGTH]);
        });
    });
}
