//! What every journal must do, as checks. A journal's own tests call [`check`].
//!
//! Each rule begins with a new journal. What a rule cannot do on a medium, such as make it fail, it skips.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::SystemTime;

use super::contract::{
    Appended, Checkpoint, CheckpointError, Durability, Entry, Journal, ReadError, Resolved,
};
use super::record::Record;
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::{CommitId, Version};

/// A journal that is checked, and the medium below it.
pub trait Subject {
    /// The journal.
    fn journal(&self) -> &dyn Journal;

    /// Lets the medium go on until all records that were sent are accepted.
    fn settle(&self);

    /// Lets everything that was accepted reach a level that the journal can reach.
    fn sync(&self, level: Level);

    /// Makes the medium fail for good; returns whether that can be done.
    fn fail(&self) -> bool;
}

/// A rule that a journal breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a journal must {rule}; {what}")]
pub struct Broken {
    /// The rule.
    pub rule: &'static str,
    /// What happened instead.
    pub what: String,
}

type Rule = (&'static str, fn(&dyn Subject) -> Result<(), String>);

const RULES: [Rule; 8] = [
    (
        "keep all records in their order, at rising positions",
        keeps_all,
    ),
    (
        "refuse a record that is too long and keep nothing of it",
        refuses_long_ones,
    ),
    (
        "reach each level it declares, the weaker one first",
        reaches_levels,
    ),
    ("tell what became of a commit, once and for all", resolves),
    ("show followers each record once, in order", shows_followers),
    ("keep the newest checkpoint", keeps_checkpoints),
    ("trim what a checkpoint replaces, and nothing else", trims),
    ("take nothing after a failure", stays_failed),
];

/// Checks all rules, each on a new journal.
///
/// # Errors
/// The first rule that is broken.
pub fn check(make: &dyn Fn() -> Box<dyn Subject>) -> Result<(), Broken> {
    for (rule, check) in RULES {
        check(&*make()).map_err(|what| Broken { rule, what })?;
    }
    Ok(())
}

fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Waits with the thread.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The changes of the record of this number, in two pieces.
fn changes(number: u64) -> [Arc<Vec<u8>>; 2] {
    let text = format!("change {number} ");
    let long = usize::try_from(number % 7).unwrap_or(0) * 1000;
    [
        Arc::new(text.into_bytes()),
        Arc::new(vec![number.to_le_bytes()[0]; long]),
    ]
}

fn with_record<T>(
    number: u64,
    changes: &[Arc<Vec<u8>>],
    use_it: impl FnOnce(&Record<'_>) -> T,
) -> T {
    use_it(&Record {
        version: Version {
            incarnation: 1,
            number,
        },
        id: CommitId(number.into()),
        time: SystemTime::UNIX_EPOCH,
        bytes: b"by the suite",
        changes,
    })
}

fn bytes_of(number: u64) -> Vec<u8> {
    with_record(number, &changes(number), |record| {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        bytes
    })
}

fn send(subject: &dyn Subject, number: u64) -> Result<Appended, AppendError> {
    with_record(number, &changes(number), |record| {
        subject.journal().append(record)
    })
}

fn append(subject: &dyn Subject, number: u64) -> Result<Position, AppendError> {
    match send(subject, number)? {
        Appended::Accepted(position) => Ok(position),
        Appended::Sent(answer) => {
            subject.settle();
            wait(answer)
        }
    }
}

/// Appends the records of these numbers.
fn fill(subject: &dyn Subject, numbers: std::ops::Range<u64>) -> Result<Vec<Position>, String> {
    let appended = numbers.map(|number| append(subject, number));
    let appended: Result<_, AppendError> = appended.collect();
    appended.map_err(|error| format!("it refused a record: {error}"))
}

fn read(subject: &dyn Subject, after: Position, limit: usize) -> Result<Vec<Entry>, String> {
    wait(subject.journal().read(after, limit)).map_err(|error| format!("reading failed: {error}"))
}

fn keeps_all(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    must(wait(journal.last()) == Ok(None), || {
        "a new one has a last record".into()
    })?;
    let positions = fill(subject, 1..30)?;
    must(positions.is_sorted_by(|one, next| one < next), || {
        format!("the positions are {positions:?}")
    })?;
    must(positions[0] > Position::default(), || {
        "the first is the default position".into()
    })?;
    let entries = read(subject, Position::default(), 1000)?;
    must(entries.len() == positions.len(), || {
        format!(
            "of {} records, {} were read",
            positions.len(),
            entries.len()
        )
    })?;
    for ((entry, position), number) in entries.iter().zip(&positions).zip(1..) {
        must(entry.position == *position, || {
            format!("record {number} is elsewhere")
        })?;
        must(entry.record == bytes_of(number), || {
            format!("record {number} is another")
        })?;
    }
    let some = read(subject, positions[4], 3)?;
    must(some == entries[5..8], || {
        "three records after the fifth are others".into()
    })?;
    must(read(subject, positions[28], 3)?.is_empty(), || {
        "there is one after the last".into()
    })?;
    let last = wait(journal.last());
    must(last == Ok(Some((positions[28], CommitId(29)))), || {
        format!("the last is {last:?}")
    })
}

fn refuses_long_ones(subject: &dyn Subject) -> Result<(), String> {
    let max = subject.journal().capabilities().max_record;
    if max > 1 << 26 {
        return Ok(());
    }
    let long = [Arc::new(vec![7; max])];
    let refused = with_record(1, &long, |record| subject.journal().append(record).err());
    must(refused == Some(AppendError::TooLarge { max }), || {
        format!("it answered {refused:?}")
    })?;
    fill(subject, 2..4)?;
    let entries = read(subject, Position::default(), 10)?;
    must(entries.len() == 2, || {
        format!("{} records of two were read", entries.len())
    })
}

fn reaches_levels(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    for (level, number) in [(Level::Buffered, 1), (Level::Durable, 2)] {
        let position = fill(subject, number..number + 1)?[0];
        if level > journal.capabilities().level {
            return Ok(());
        }
        let mut waits = pin!(journal.when_reached(position, level));
        if waits
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
        {
            must(journal.reached(level) < position, || {
                "its mark has passed a waiter".into()
            })?;
        }
        subject.sync(level);
        must(wait(waits) == Durability::Reached, || {
            format!("{level:?} was not reached")
        })?;
        must(journal.reached(level) >= position, || {
            format!("the mark of {level:?} stands")
        })?;
        must(
            journal.reached(Level::Buffered) >= journal.reached(Level::Durable),
            || "more is durable than is buffered".into(),
        )?;
    }
    Ok(())
}

fn resolves(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let position = fill(subject, 1..2)?[0];
    let version = Version {
        incarnation: 1,
        number: 1,
    };
    let told = wait(journal.resolve(CommitId(1)));
    must(told == Resolved::Stored { position, version }, || {
        format!("it told {told:?}")
    })?;
    let told = wait(journal.resolve(CommitId(77)));
    must(told == Resolved::NotStored, || {
        format!("of what never was it told {told:?}")
    })?;
    // One that may still be on its way: whatever is told of it stays true.
    let sent = send(subject, 2);
    let told = wait(journal.resolve(CommitId(2)));
    subject.settle();
    let answer = match sent {
        Ok(Appended::Accepted(position)) => Ok(position),
        Ok(Appended::Sent(answer)) => wait(answer),
        Err(error) => Err(error),
    };
    let stored = read(subject, position, 10)?.len();
    let is_true = match told {
        Resolved::Stored { position, .. } => stored == 1 && answer == Ok(position),
        Resolved::NotStored => stored == 0 && answer.is_err(),
        Resolved::Unknown => true,
    };
    must(is_true, || {
        format!("it told {told:?}, answered {answer:?}, and {stored} records are there")
    })
}

fn shows_followers(subject: &dyn Subject) -> Result<(), String> {
    let positions = fill(subject, 1..20)?;
    let mut follower = subject.journal().follow(positions[9]);
    let mut next = move || wait(std::future::poll_fn(|cx| follower.poll_next(cx)));
    let mut seen = Vec::new();
    while seen.len() < 9 {
        seen.extend(next().map_err(|error| format!("following failed: {error}"))?);
    }
    fill(subject, 20..23)?;
    while seen.len() < 12 {
        seen.extend(next().map_err(|error| format!("following failed: {error}"))?);
    }
    let all = read(subject, positions[9], 100)?;
    must(seen == all, || {
        format!("it showed {} records, of {}", seen.len(), all.len())
    })
}

fn keeps_checkpoints(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    must(wait(journal.checkpoint()) == Ok(None), || {
        "a new one has a checkpoint".into()
    })?;
    let positions = fill(subject, 1..6)?;
    let put = |at: Position, text: &str| {
        let pieces = vec![text.as_bytes().to_vec(), Vec::new(), vec![7; 100_000]];
        let checkpoint = Checkpoint { at, pieces };
        (wait(journal.put_checkpoint(checkpoint.clone())), checkpoint)
    };
    let nowhere = put(Position(positions[4].0 + 1), "nowhere").0;
    must(nowhere == Err(CheckpointError::NoSuchPosition), || {
        format!("it answered {nowhere:?}")
    })?;
    for position in [positions[1], positions[3], positions[3]] {
        let (outcome, checkpoint) = put(position, "state");
        must(outcome == Ok(()), || format!("it refused one: {outcome:?}"))?;
        let found = wait(journal.checkpoint()).map_err(|error| error.to_string())?;
        let is_same = found.is_some_and(|found| {
            found.at == checkpoint.at && found.pieces.concat() == checkpoint.pieces.concat()
        });
        must(is_same, || "another one was read back".into())?;
    }
    let older = put(positions[2], "older").0;
    must(older == Err(CheckpointError::Older), || {
        format!("it answered {older:?} to an older one")
    })
}

fn trims(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let positions = fill(subject, 1..8)?;
    let early = wait(journal.trim(positions[2]));
    must(early == Err(CheckpointError::NoCheckpoint), || {
        format!("it answered {early:?}")
    })?;
    let (at, pieces) = (positions[6], vec![b"all".to_vec()]);
    let put = wait(journal.put_checkpoint(Checkpoint { at, pieces }));
    must(put == Ok(()), || {
        format!("it refused a checkpoint: {put:?}")
    })?;
    for _ in 0..2 {
        let trimmed = wait(journal.trim(positions[3]));
        must(trimmed == Ok(()), || format!("it answered {trimmed:?}"))?;
    }
    let old = wait(journal.read(positions[2], 10));
    must(old == Err(ReadError::TooOld { checkpoint: at }), || {
        format!("it read {old:?}")
    })?;
    must(read(subject, positions[3], 10)?.len() == 3, || {
        "it trimmed more".into()
    })?;
    let mut follower = journal.follow(positions[2]);
    let shown = wait(std::future::poll_fn(|cx| follower.poll_next(cx)));
    must(shown == Err(ReadError::TooOld { checkpoint: at }), || {
        format!("it showed {shown:?}")
    })?;
    wait(journal.trim(at)).map_err(|error| error.to_string())?;
    let last = wait(journal.last());
    must(last == Ok(Some((at, CommitId(7)))), || {
        format!("the last is {last:?}")
    })?;
    let next = fill(subject, 8..9)?[0];
    must(next > at, || "a position was used again".into())
}

fn stays_failed(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let position = fill(subject, 1..2)?[0];
    let level = journal.capabilities().level;
    let is_reached = journal.reached(level) >= position;
    let waits = journal.when_reached(position, level);
    if !subject.fail() {
        return Ok(());
    }
    let answer = wait(waits);
    let due = if is_reached {
        Durability::Reached
    } else {
        Durability::Unknown
    };
    must(answer == due, || format!("a waiter was told {answer:?}"))?;
    for number in [2, 3] {
        let refused = append(subject, number);
        must(refused == Err(AppendError::Poisoned), || {
            format!("it answered {refused:?}")
        })?;
    }
    let entries = read(subject, Position::default(), 10)?;
    must(entries.len() == 1, || {
        format!("{} records are there", entries.len())
    })
}
