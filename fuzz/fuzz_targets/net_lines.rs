//! A stream as lines, in pieces with pauses and failures, and with calls that are dropped: each line comes once and in
//! order, or is refused as too long, and each failure is told once.

#![no_main]

use std::{
    collections::VecDeque,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use futures_io::AsyncRead;
use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use weald_net::{LineTooLong, Lines};

#[derive(Arbitrary, Debug)]
struct Input {
    most: u8,
    drops_calls: bool,
    steps: VecDeque<Step>,
}

/// What the stream does next.
#[derive(Arbitrary, Debug)]
enum Step {
    Piece(Vec<u8>),
    Pause,
    Fail,
}

struct Scripted(VecDeque<Step>);

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.0.pop_front() {
            Some(Step::Piece(mut piece)) => {
                let rest = piece.split_off(piece.len().min(buffer.len()));
                buffer[..piece.len()].copy_from_slice(&piece);
                if !rest.is_empty() {
                    self.0.push_front(Step::Piece(rest));
                }
                Poll::Ready(Ok(piece.len()))
            }
            Some(Step::Pause) => Poll::Pending,
            Some(Step::Fail) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            None => Poll::Ready(Ok(0)),
        }
    }
}

/// A line, or that it was too long.
type Line = Result<Vec<u8>, ()>;

fuzz_target!(|input: Input| {
    let (most, mut steps) = (usize::from(input.most), input.steps);
    // To read nothing is the end of a stream.
    steps.retain(|step| !matches!(step, Step::Piece(piece) if piece.is_empty()));
    let failures = steps.iter().filter(|step| matches!(step, Step::Fail));
    let expected = (lines_of(&steps, most), failures.count());
    let lines = Lines::new(Scripted(steps)).most(most);
    assert_eq!(read(lines, input.drops_calls), expected);
});

/// The lines of all pieces, read at once.
fn lines_of(steps: &VecDeque<Step>, most: usize) -> Vec<Line> {
    let pieces = steps.iter().filter_map(|step| match step {
        Step::Piece(piece) => Some(&piece[..]),
        Step::Pause | Step::Fail => None,
    });
    let text: Vec<u8> = pieces.flatten().copied().collect();
    let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (line.len() <= most).then(|| line.to_vec()).ok_or(())
    });
    lines.collect()
}

/// The lines as they come, and how many failures are told.
fn read(mut lines: Lines<Scripted>, drops_calls: bool) -> (Vec<Line>, usize) {
    let mut context = Context::from_waker(Waker::noop());
    let (mut read, mut failures) = (Vec::new(), 0);
    loop {
        let mut call = pin!(lines.next_bytes());
        let line = loop {
            match call.as_mut().poll(&mut context) {
                Poll::Ready(line) => break Some(line),
                Poll::Pending if drops_calls => break None,
                Poll::Pending => {}
            }
        };
        match line {
            None => {}
            Some(Ok(Some(line))) => read.push(Ok(line)),
            Some(Ok(None)) => return (read, failures),
            Some(Err(error)) if is_too_long(&error) => read.push(Err(())),
            Some(Err(_)) => failures += 1,
        }
    }
}

fn is_too_long(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|error| error.is::<LineTooLong>())
}
