//! Pipes, and the standard input and output of the program.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use crate::{descriptor::Sharing, opened::Opened, read_end::ReadEnd, write_end::WriteEnd};

/// Standard input. Each call returns another reader of the same input, with a buffer of its own: create one, and keep
/// it. The input stays in the mode in which the program got it.
///
/// # Errors
/// Errors from the operating system. Fails if the current runtime has shut down.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// let mut lines = weald::net::stdin()?.lines();
/// while let Some(line) = lines.next().await? {
///     println!("{} bytes", line.len());
/// }
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn stdin() -> io::Result<ReadEnd> {
    Ok(ReadEnd::of(Opened::standard(
        io::stdin().as_fd(),
        "standard input",
    )?))
}

/// Standard output, without a buffer. It stays in the mode in which the program got it. Text that `println!` has
/// buffered is written by `println!`, not here.
///
/// # Errors
/// Errors from the operating system. Fails if the current runtime has shut down.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// weald::net::stdout()?.write_all(b"hello\n").await?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn stdout() -> io::Result<WriteEnd> {
    Ok(WriteEnd::of(Opened::standard(
        io::stdout().as_fd(),
        "standard output",
    )?))
}

/// Standard error; see [`stdout`].
///
/// # Errors
/// As [`stdout`].
#[track_caller]
pub fn stderr() -> io::Result<WriteEnd> {
    Ok(WriteEnd::of(Opened::standard(
        io::stderr().as_fd(),
        "standard error",
    )?))
}

/// An anonymous pipe: bytes that are written to the second end are read from the first.
///
/// # Errors
/// Errors from the operating system, such as that no descriptor is left.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let (reader, mut writer) = weald::net::pipe()?;
/// writer.write_all(b"one\ntwo\n").await?;
/// drop(writer);
/// let mut lines = reader.lines();
/// assert_eq!(lines.next().await?.as_deref(), Some("one"));
/// assert_eq!(lines.next().await?.as_deref(), Some("two"));
/// assert_eq!(lines.next().await?, None);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn pipe() -> io::Result<(ReadEnd, WriteEnd)> {
    let (reader, writer) = io::pipe()?;
    let (reader, writer): (OwnedFd, OwnedFd) = (reader.into(), writer.into());
    let reader = Opened::new(reader.into(), Sharing::Own, "a pipe".as_ref())?;
    let writer = Opened::new(writer.into(), Sharing::Own, "a pipe".as_ref())?;
    Ok((ReadEnd::of(reader), WriteEnd::of(writer)))
}
