//! The forest as it was at a moment. The journal finds it; a number alone becomes a version here.

use std::ops::ControlFlow;

use pollster::block_on;
use weald_forest::journal::{Journal, Position};
use weald_forest::{Forest, Version};
use weald_journal::{Moment as At, PastError, ReadOnlyForest, ReadOnlyJournal};

use super::failure::Failure;
use super::moment::Moment;
use super::records::{each_after, failed, removed, unless_removed};

/// The forest as it was: from the checkpoint before the moment, and the records between both.
pub(super) fn earlier(
    journal: &ReadOnlyJournal,
    moment: &Moment,
) -> Result<ReadOnlyForest, Failure> {
    let asked = match moment {
        Moment::Now => At::Version(newest(journal)?),
        Moment::Version(version) => At::Version(*version),
        Moment::Number(number) => At::Version(numbered(journal, *number)?),
        Moment::Time(time) => At::Time(*time),
        Moment::Tag(_) => {
            let text = "a tag belongs to a tree; add the name of the tree.";
            return Err(Failure::Usage(text.to_owned()));
        }
    };
    let past = journal.at(asked).map_err(|error| told(journal, error))?;
    let forest = ReadOnlyForest::recover(Forest::builder().keep(1), past);
    let forest = block_on(forest).map_err(|error| failed(journal, error))?;
    unless_removed(forest)
}

/// Why the journal does not have a moment.
fn told(journal: &ReadOnlyJournal, error: PastError) -> Failure {
    match error {
        PastError::TooOld { oldest } => too_old(journal, oldest),
        PastError::NoVersion(asked) => match newest(journal) {
            Ok(newest) if asked > newest => too_new(newest),
            _ => Failure::Absent(format!("{error}.")),
        },
        PastError::Empty => Failure::Absent(format!("{error}.")),
        _ if !journal.is_whole() => removed(),
        error => Failure::Damaged(format!("{error}.")),
    }
}

fn too_old(journal: &ReadOnlyJournal, oldest: Version) -> Failure {
    let why = match journal.is_trimmed() {
        true => "what was before was trimmed",
        false => "it is the first one",
    };
    Failure::Absent(format!(
        "the oldest commit that can be shown is {oldest}; {why}."
    ))
}

fn too_new(newest: Version) -> Failure {
    Failure::Absent(format!(
        "that version does not exist yet; the newest is {newest}."
    ))
}

/// The version of a number, or the last one before.
fn numbered(journal: &ReadOnlyJournal, number: u64) -> Result<Version, Failure> {
    let newest = newest(journal)?;
    if number >= newest.number {
        return match number == newest.number {
            true => Ok(newest),
            false => Err(too_new(newest)),
        };
    }
    let mut begin = journal.begin();
    for at in journal.checkpoints().into_iter().rev() {
        let next = versions(journal, at, 0)?.1;
        if next.is_some_and(|next| next.number <= number) {
            begin = at;
            break;
        }
    }
    let (last, next) = versions(journal, begin, number)?;
    if let Some(last) = last {
        return Ok(last);
    }
    // It is before all records. The oldest checkpoint may have it.
    match journal.at(At::Time(std::time::SystemTime::UNIX_EPOCH)) {
        Err(PastError::TooOld { oldest }) if oldest.number <= number => Ok(oldest),
        Err(error) => Err(told(journal, error)),
        Ok(_) => Err(too_old(journal, next.unwrap_or(newest))),
    }
}

/// The last version up to a number among the records after a position, and the one after that.
fn versions(
    journal: &ReadOnlyJournal,
    after: Position,
    number: u64,
) -> Result<(Option<Version>, Option<Version>), Failure> {
    let (mut last, mut next) = (None, None);
    each_after(journal, after, |_, stored| {
        if stored.version.number > number {
            next = Some(stored.version);
            return Ok(ControlFlow::Break(()));
        }
        last = Some(stored.version);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((last, next))
}

/// The newest version that the journal has.
fn newest(journal: &ReadOnlyJournal) -> Result<Version, Failure> {
    let checkpoints = journal.checkpoints();
    let begin = checkpoints.last().copied();
    let (last, _) = versions(journal, begin.unwrap_or(journal.begin()), u64::MAX)?;
    if let Some(last) = last {
        return Ok(last);
    }
    let read = |error: PastError| told(journal, error);
    let stored = block_on(journal.checkpoint()).map_err(|error| read(error.into()))?;
    let stored = stored.ok_or_else(|| read(PastError::Empty))?;
    let (newest, _) = stored
        .newest()
        .map_err(|error| read(PastError::Checkpoint(error)))?;
    Ok(newest)
}
