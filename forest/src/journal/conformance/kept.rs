//! The rules about checkpoints, erasable bytes, and what is trimmed.

use weald_tree::NodeId;

use super::super::contract::{Checkpoint, CheckpointError, ReadError};
use super::super::record::Record;
use super::subject::{Subject, answer_of, changes, fill, must, read, wait, with_record};
use crate::content::erasable::{Blob, BlobId, BlobPlace, Erasure};
use crate::level::Position;
use crate::version::CommitId;

/// The newest checkpoint: its position and its bytes.
fn read_checkpoint(subject: &dyn Subject) -> Result<Option<(Position, Vec<u8>)>, String> {
    let found = wait(subject, subject.journal().checkpoint()).map_err(|error| error.to_string())?;
    let Some(found) = found else { return Ok(None) };
    let pieces: Result<Vec<_>, _> = found.pieces.collect();
    let pieces = pieces.map_err(|error| error.to_string())?;
    Ok(Some((found.at, pieces.concat())))
}

pub(super) fn keeps_checkpoints(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    must(read_checkpoint(subject)?.is_none(), || {
        "a new one has a checkpoint".into()
    })?;
    let positions = fill(subject, 1..6)?;
    let pieces = |text: &str| [text.as_bytes().to_vec(), Vec::new(), vec![7; 100_000]];
    let put = |at: Position, text: &str| {
        let (pieces, blobs) = (Box::new(pieces(text).into_iter()), Vec::new());
        wait(
            subject,
            journal.put_checkpoint(Checkpoint { at, blobs, pieces }),
        )
    };
    let nowhere = put(Position(positions[4].0 + 1), "nowhere");
    must(nowhere == Err(CheckpointError::NoSuchPosition), || {
        format!("it answered {nowhere:?}")
    })?;
    for (at, text) in [(1, "state"), (3, "later state"), (3, "again")] {
        let outcome = put(positions[at], text);
        must(outcome == Ok(()), || format!("it refused one: {outcome:?}"))?;
        let found = read_checkpoint(subject)?;
        let due = (positions[at], pieces(text).concat());
        must(found == Some(due), || "another one was read back".into())?;
    }
    let older = put(positions[2], "older");
    must(older == Err(CheckpointError::Older), || {
        format!("it answered {older:?} to an older one")
    })
}

/// Appends a record with these erasable bytes, each for its own node, or a record that erases the bytes of a
/// node.
fn append_with(
    subject: &dyn Subject,
    number: u64,
    (brings, erases): (&[u64], Option<Erasure>),
) -> Result<Position, String> {
    let blob = |at: &u64| Blob {
        id: BlobId((*at).into()),
        tree: 1,
        node: node(*at),
        name: "secret".into(),
        bytes: format!("the secret of {at}").into_bytes().into(),
    };
    let blobs: Vec<Blob> = brings.iter().map(blob).collect();
    let sent = with_record(number, &changes(number), |record| {
        let (blobs, erases) = (&blobs[..], erases.as_ref());
        subject.journal().append(&Record {
            blobs,
            erases,
            ..*record
        })
    });
    answer_of(subject, sent).map_err(|error| format!("it refused a record: {error}"))
}

fn node(number: u64) -> NodeId {
    NodeId::new(number).unwrap_or_else(|| unreachable!("the suite counts from 1"))
}

pub(super) fn keeps_blobs(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let erasure = |at: u64, ids: &[u128]| Erasure {
        place: (1, node(at), "secret".into()),
        ids: ids.iter().map(|id| BlobId(*id)).collect(),
    };
    let are = |due: &[u64]| {
        for at in 1..6 {
            let found = wait(subject, journal.blob(BlobId(at.into())))
                .map_err(|error| error.to_string())?;
            let text = format!("the secret of {at}").into_bytes();
            let due = due.contains(&at).then_some(text);
            must(found == due, || format!("of bytes {at} it has {found:?}"))?;
            let has = wait(subject, journal.has_blob(BlobId(at.into())));
            must(has == Ok(found.is_some()), || {
                format!("of bytes {at} it tells {has:?} and gives {found:?}")
            })?;
        }
        gives_all(subject, due)
    };
    append_with(subject, 1, (&[1, 2, 3], None))?;
    let second = append_with(subject, 2, (&[4, 5], None))?;
    are(&[1, 2, 3, 4, 5])?;
    append_with(subject, 3, (&[], Some(erasure(2, &[4]))))?;
    are(&[1, 3, 5])?;
    let last = append_with(subject, 4, (&[], None))?;
    let pieces = Box::new([b"all".to_vec()].into_iter());
    let (at, blobs) = (last, vec![BlobId(3)]);
    let put = wait(
        subject,
        journal.put_checkpoint(Checkpoint { at, blobs, pieces }),
    );
    must(put == Ok(()), || {
        format!("it refused a checkpoint: {put:?}")
    })?;
    are(&[1, 3, 5])?;
    let kept = |at: u64| wait(subject, journal.keep_blob(BlobId(at.into())));
    let (id, node_of_1) = (BlobId(1), node(1));
    let name = "secret".into();
    let place = BlobPlace {
        id,
        node: node_of_1,
        name,
    };
    must(kept(1) == Ok(Some((1, place))), || {
        format!("it keeps bytes 1 that were brought for {:?}", kept(1))
    })?;
    must(kept(2) == Ok(None), || {
        "it keeps bytes that were erased".into()
    })?;
    let trimmed = wait(subject, journal.trim(second));
    must(trimmed == Ok(()), || format!("it answered {trimmed:?}"))?;
    // Bytes that nobody asks for any more may be there or not.
    for at in [1_u64, 3] {
        let left = wait(subject, journal.blob(BlobId(at.into())));
        let left = left.map_err(|error| error.to_string())?;
        must(
            left == Some(format!("the secret of {at}").into_bytes()),
            || {
                format!(
                    "it trimmed bytes {at}, to which its checkpoint refers, or which were to be kept"
                )
            },
        )?;
    }
    Ok(())
}

/// Asks for many blobs at once; only these are there.
fn gives_all(subject: &dyn Subject, due: &[u64]) -> Result<(), String> {
    let mut given = Vec::new();
    let mut take = |id: BlobId, bytes| given.push((id.0, bytes));
    let asked = (1..6_u64).rev().map(|at| BlobId(at.into())).collect();
    let blobs = subject.journal().blobs(asked, &mut take);
    wait(subject, blobs).map_err(|error| error.to_string())?;
    given.sort_unstable();
    let text = |at: u64| format!("the secret of {at}").into_bytes();
    let due = (1..6).map(|at| (u128::from(at), due.contains(&at).then(|| text(at))));
    must(given.iter().cloned().eq(due), || {
        format!("asked for many bytes it gives {given:?}")
    })
}

pub(super) fn trims(subject: &dyn Subject) -> Result<(), String> {
    let journal = subject.journal();
    let positions = fill(subject, 1..8)?;
    let early = wait(subject, journal.trim(positions[2]));
    must(early == Err(CheckpointError::NoCheckpoint), || {
        format!("it answered {early:?}")
    })?;
    let (at, blobs) = (positions[6], Vec::new());
    let pieces = Box::new([b"all".to_vec()].into_iter());
    let put = wait(
        subject,
        journal.put_checkpoint(Checkpoint { at, blobs, pieces }),
    );
    must(put == Ok(()), || {
        format!("it refused a checkpoint: {put:?}")
    })?;
    for _ in 0..2 {
        let trimmed = wait(subject, journal.trim(positions[3]));
        must(trimmed == Ok(()), || format!("it answered {trimmed:?}"))?;
    }
    let old = wait(subject, journal.read(positions[2], 10));
    must(old == Err(ReadError::TooOld { checkpoint: at }), || {
        format!("it read {old:?}")
    })?;
    must(read(subject, positions[3], 10)?.len() == 3, || {
        "it trimmed more".into()
    })?;
    let mut follower = journal.follow(positions[2]);
    let shown = wait(subject, std::future::poll_fn(|cx| follower.poll_next(cx)));
    must(shown == Err(ReadError::TooOld { checkpoint: at }), || {
        format!("it showed {shown:?}")
    })?;
    wait(subject, journal.trim(at)).map_err(|error| error.to_string())?;
    let last = wait(subject, journal.last());
    must(last == Ok(Some((at, CommitId(7)))), || {
        format!("the last is {last:?}")
    })?;
    let next = fill(subject, 8..9)?[0];
    must(next > at, || "a position was used again".into())
}
