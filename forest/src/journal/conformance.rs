//! What every journal must do, as checks. A journal's own tests call [`check`].
//!
//! Each rule begins with a new journal. A rule skips a step that the medium does not allow, such as making it
//! fail.

mod kept;
mod subject;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::contract::{Appended, Durability, Resolved};
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::{CommitId, Version};

pub use subject::Subject;

use kept::{keeps_blobs, keeps_checkpoints, trims};
use subject::{append, bytes_of, fill, must, read, send, wait, with_record};

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

const RULES: [Rule; 9] = [
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
    (
        "keep erasable bytes until they are erased, or trimmed and not in the checkpoint",
        keeps_blobs,
    ),
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

fn keeps_all(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    must(wait(subject, journal.last()) == Ok(None), || {
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
    let last = wait(subject, journal.last());
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
        must(wait(subject, waits) == Durability::Reached, || {
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
    let told = wait(subject, journal.resolve(CommitId(1)));
    must(told == Resolved::Stored { position, version }, || {
        format!("it told {told:?}")
    })?;
    let told = wait(subject, journal.resolve(CommitId(77)));
    must(told == Resolved::NotStored, || {
        format!("of what never was it told {told:?}")
    })?;
    // A record that may still be on its way: whatever the journal says about it must stay true.
    let sent = send(subject, 2);
    let told = wait(subject, journal.resolve(CommitId(2)));
    subject.settle();
    let answer = match sent {
        Ok(Appended::Accepted(position)) => Ok(position),
        Ok(Appended::Sent(answer)) => wait(subject, answer),
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
    let mut next = move || wait(subject, std::future::poll_fn(|cx| follower.poll_next(cx)));
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

fn stays_failed(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let position = fill(subject, 1..2)?[0];
    let level = journal.capabilities().level;
    let waits = journal.when_reached(position, level);
    if !subject.fail() {
        return Ok(());
    }
    let answer = wait(subject, waits);
    // It may have been reached before it failed.
    let due = if journal.reached(level) >= position {
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
