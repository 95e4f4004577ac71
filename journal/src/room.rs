//! What is done before a record is appended, while others still commit: its author waits for room; most of a large
//! record is written ahead (`ahead.rs`, by the thread that prepares), and its author seals large erasable bytes (here).
//! So nobody behind the record waits for that.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use weald_forest::journal::{Blob, BlobId, Later, Room};

use crate::blob::Sealing;
use crate::core::Core;
use crate::write_ahead::HeldAhead;

/// The longest record.
pub(crate) const MAX_RECORD: usize = 1 << 30;

impl Core {
    /// What an author waits for while the buffer is full.
    pub(crate) fn when_buffered(self: &Arc<Self>) -> Option<Later<'static, Room>> {
        let state = self.state();
        let has_room = state.waiting.is_empty() && state.log.unwritten < self.settings.buffer;
        let (last, _) = state.log.last.filter(|_| !has_room)?;
        drop(state);
        let when = self.when_written(last);
        Some(Box::pin(async move {
            _ = when.await;
            Room::default()
        }))
    }

    /// What the author of a record with this many bytes waits for.
    pub(crate) fn when_room(
        self: &Arc<Self>,
        bytes: usize,
        changes: &[Arc<Vec<u8>>],
        blobs: &[Blob],
    ) -> Option<Later<'static, Room>> {
        self.refuse_if_forked(); // There, no thread prepares. Nor is anything prepared for what is refused.
        if changes.iter().map(|piece| piece.len()).sum::<usize>() > MAX_RECORD {
            return None;
        }
        let mut state = self.state();
        let asked = state.ask_for_room(bytes, changes);
        let (_, most) = state.log.limits();
        self.wake_threads(state);
        // Without random bytes for a key, the record is refused when it is appended.
        let sealings = blobs.iter().map(|blob| Sealing::new(blob, most));
        let sealings: Vec<_> = sealings.filter_map(Result::ok).collect();
        if asked.is_none() && sealings.is_empty() {
            return None;
        }
        let (room, number) = asked.unzip();
        let ahead = number.flatten().map(|number| HeldAhead::new(self, number));
        let core = Arc::clone(self);
        Some(Box::pin(async move {
            let sealed = seal(core, sealings).await;
            if let Some(room) = room {
                _ = room.await;
            }
            match (&sealed, &ahead) {
                (None, None) => Room::default(),
                _ => Room::held((sealed, ahead)),
            }
        }))
    }
}

/// Seals blobs part by part. Others of the author's executor run in between.
async fn seal(core: Arc<Core>, sealings: Vec<Sealing>) -> Option<HeldSealed> {
    if sealings.is_empty() {
        return None;
    }
    let mut all = Vec::with_capacity(sealings.len());
    for mut sealing in sealings {
        while sealing.seal_next() {
            let mut has_yielded = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut has_yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        all.push((sealing.blob.id, sealing));
    }
    let ids = all.iter().map(|(id, _)| *id).collect();
    core.state().sealed.extend(all);
    Some(HeldSealed { core, ids })
}

/// What an author holds whose erasable bytes are sealed.
struct HeldSealed {
    core: Arc<Core>,
    ids: Vec<BlobId>,
}

impl Drop for HeldSealed {
    fn drop(&mut self) {
        // A thread of the parent may have held the state.
        if self.core.is_forked() {
            return;
        }
        let mut state = self.core.state();
        let left = self.ids.iter().map(|id| state.sealed.remove(id));
        let left: Vec<_> = left.collect();
        drop(state);
        drop(left); // It may be large.
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::SystemTime;

    use weald_forest::journal::{Journal, Record};
    use weald_forest::{CommitId, NodeId, Version};

    use super::*;
    use crate::core::Work;
    use crate::disk_journal::DiskJournal;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    fn blob() -> Blob {
        Blob {
            id: BlobId(7),
            tree: 1,
            node: NodeId::new(1).unwrap(),
            name: "name".into(),
            bytes: (0..9_000)
                .map(|at| (at % 251) as u8)
                .collect::<Vec<_>>()
                .into(),
        }
    }

    fn append(journal: &DiskJournal, blobs: &[Blob]) {
        let record = Record {
            version: Version {
                incarnation: 1,
                number: 1,
            },
            id: CommitId(1),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: &[],
            changes: &[],
            blobs,
            erases: None,
        };
        journal.append(&record).unwrap();
    }

    /// The room, and how often others were let run.
    fn wait(journal: &DiskJournal, blobs: &[Blob]) -> (Room, usize) {
        let mut room = journal.when_room(9_000, &[], blobs).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut yields = 0;
        loop {
            match pin!(&mut room).poll(&mut cx) {
                Poll::Ready(room) => return (room, yields),
                Poll::Pending => yields += 1,
            }
            while journal.work(Work::Prepare) {}
        }
    }

    #[test]
    fn large_erasable_bytes_are_sealed_by_their_author_before_they_are_appended() {
        let settings = Settings::new().segment(4096).by_hand();
        let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
        let core = journal.core();
        let (room, yields) = wait(&journal, &[blob()]);
        assert!(yields > 8, "others run after each of its parts");
        let sealing = core.state().sealed.get(&BlobId(7)).cloned().unwrap();
        assert!(sealing.is_sealed());
        append(&journal, &[blob()]);
        assert!(core.state().sealed.is_empty(), "the record has it");
        drop(room);
        while journal.work(Work::Prepare) || journal.work(Work::Write) {}
        assert!(core.keys().get(BlobId(7)).unwrap().key == sealing.key);
        let found = pollster::block_on(journal.blob(BlobId(7))).unwrap();
        assert_eq!(found.as_deref(), Some(&blob().bytes[..]));
    }

    #[test]
    fn what_was_sealed_for_an_author_who_is_gone_is_forgotten() {
        let settings = Settings::new().segment(4096).by_hand();
        let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
        let (room, _) = wait(&journal, &[blob()]);
        assert_eq!(journal.core().state().sealed.len(), 1);
        drop(room);
        assert!(journal.core().state().sealed.is_empty());
    }
}
