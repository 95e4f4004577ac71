//! How a journal ends before it is closed: the medium has failed, another writer has taken over, or this is a forked
//! child.
//!
//! After every operation on the medium, and before its result counts, the caller asks whether this is still the newest
//! writer.

use std::io;
use std::process;
use std::sync::{MutexGuard, PoisonError};

use weald_forest::journal::{AppendError, catch_foreign, notice};

use crate::core::{Core, Failure};
use crate::medium::text_of;
use crate::names;
use crate::next_step::State;
use crate::waiting::Due;

impl Core {
    /// Whether this is a child that was forked from the process that opened the journal. The files, the places in them
    /// and the threads are the parent's.
    pub(crate) fn is_forked(&self) -> bool {
        self.pid != process::id()
    }

    /// A wait in such a child would be for threads that are not there. Each wait calls this, and not each append,
    /// because it asks the system: only an append that finds no place does.
    pub(crate) fn refuse_if_forked(&self) {
        if self.is_forked() {
            self.end(AppendError::Fenced);
        }
    }

    /// Does something with the medium. A panic in it is a failure like any other: nobody may wait for ever. A writer
    /// that was overtaken finds files missing, and fails because of that.
    pub(crate) fn caught<T>(
        &self,
        doing: &'static str,
        act: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let outcome = catch_foreign(act).unwrap_or_else(|| {
            let error = io::Error::other("the medium has panicked");
            Err(Failure::Medium(doing, error))
        });
        if !matches!(outcome, Err(Failure::Medium(..))) {
            return outcome;
        }
        match catch_foreign(|| self.is_overtaken()) {
            Some(true) => Err(Failure::Fenced),
            _ => outcome,
        }
    }

    /// Whether the file `lock` says so. If it cannot be read, nobody knows.
    fn is_overtaken(&self) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lock) = lock.as_ref() else {
            return false;
        };
        let mut note = vec![0; self.note.len()];
        match lock.read_at(&mut note, 0) {
            Ok(_) => note != self.note,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// The process that has noted itself last. It is only for a report, which may be without it.
    fn newest_writer(&self) -> Option<u32> {
        let noted = || names::noted_pid(&*self.medium.open(names::LOCK).ok()?);
        catch_foreign(noted).flatten()
    }

    /// For a report, even if the medium panics.
    pub(crate) fn medium_name(&self) -> String {
        catch_foreign(|| self.medium.name()).unwrap_or_else(|| "a journal".to_owned())
    }

    /// Whether no other writer has taken over. It is asked after each write and sync and before that counts: another
    /// writer notes itself before it looks where the journal ends, so it finds whatever has counted.
    pub(crate) fn must_be_newest(&self) -> Result<(), Failure> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_mine = lock
            .as_ref()
            .is_some_and(|lock| names::read_note(&**lock) == self.note);
        if is_mine && !self.is_forked() {
            Ok(())
        } else {
            Err(Failure::Fenced)
        }
    }

    /// The state after something was done. After a failure it takes nothing any more from here on, and not only when
    /// that was told: what another thread wrote meanwhile would count, behind what is missing.
    pub(crate) fn state_after(&self, outcome: &Result<(), Failure>) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if let Err(failure) = outcome {
            state.failed.get_or_insert(failure.refusal());
        }
        state
    }

    /// Ends the journal.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.end(failure.refusal());
        let name = self.medium_name();
        match failure {
            Failure::Medium(doing, error) => {
                let error = text_of(error);
                let why = format!("{doing} failed, so the journal takes nothing any more: {error}");
                notice(move || tracing::error!("{name}: {why}"));
            }
            Failure::Fenced => {
                let why = self.why_fenced();
                notice(move || tracing::error!("{name}: {why}"));
            }
        }
    }

    /// What has become of the right to write, for a report.
    fn why_fenced(&self) -> String {
        if let Some(advice) = catch_foreign(|| self.what_is_gone()).flatten() {
            return advice.to_owned();
        }
        let by = match self.newest_writer().filter(|pid| *pid != self.pid) {
            Some(pid) => format!("the process {pid}"),
            None => "another writer".to_owned(),
        };
        format!(
            "{by} has taken over, or the file `lock` is not the one any more that this writer has locked, so this \
             journal takes nothing any more. End one of the two programs, and do not open the forest here while the \
             other one has it"
        )
    }

    /// A directory without a `lock`, or none at all, has no other writer.
    fn what_is_gone(&self) -> Option<&'static str> {
        let is_not_found = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_lock_gone = self
            .medium
            .open(names::LOCK)
            .is_err_and(|it| is_not_found(&it));
        if !is_lock_gone {
            return None;
        }
        // Before the list, because new files come meanwhile.
        let (known, has_keys) = self.known_files();
        // The names in it can be read even after it was removed. What is not the journal's may be left.
        let is_removed = match self.medium.list() {
            Ok(names) => {
                let is_key_file = |name: &String| names::keys_of(name).is_some();
                names.is_empty()
                    || known.iter().any(|it| !names.contains(it))
                    || has_keys && !names.iter().any(is_key_file)
            }
            Err(error) => is_not_found(&error),
        };
        Some(match is_removed {
            true => {
                "the directory was removed, or files of the journal in it, so this journal takes nothing any more. End \
                 the program, put the directory back from a copy, and start the program again"
            }
            false => {
                "the file `lock` was removed, so this journal takes nothing any more: another program could open the \
                 forest. Start the program again, and leave the file where it is"
            }
        })
    }

    /// Files that are there, unless somebody else has removed them: open segments, those of the history that no trim
    /// removes, and the newest checkpoint. Also whether there is a file of keys, whose name may just be changing.
    fn known_files(&self) -> (Vec<String>, bool) {
        let mut known: Vec<_> = self.files().keys().map(|id| names::segment(*id)).collect();
        let state = self.state();
        let chain = &state.log.chain;
        let gone = chain.upto(chain.trimmed).pop();
        let kept = chain.newest_first().into_iter();
        known.extend(kept.filter(|id| Some(*id) > gone).map(names::segment));
        known.extend(state.checkpoints.last().map(|at| names::checkpoint(*at)));
        drop(state);
        // Whoever has found the failure may hold them.
        let has_keys = self.try_keys().is_some_and(|keys| keys.number() > 0);
        (known, has_keys)
    }

    /// Takes nothing any more: what has not reached its level is unknown.
    pub(crate) fn end(&self, error: AppendError) {
        let mut state = self.state();
        state.failed.get_or_insert(error);
        let due = state.waiting.refuse_all(error);
        let ahead = state.log.ahead.take();
        state.regroup.end();
        drop(state);
        drop(ahead); // It may be large.
        self.wakes.run(|| {
            self.marks.fail();
            due.into_iter().for_each(Due::give);
        });
        self.threads.notify_all();
        self.preparer.notify_all();
        self.keeper.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use std::time::SystemTime;

    use weald_forest::journal::{Appended, Durability, Journal, Position, ReadError, Record};
    use weald_forest::{CommitId, Version};

    use super::*;
    use crate::body::Share;
    use crate::core::Work;
    use crate::directory::Directory;
    use crate::disk_journal::DiskJournal;
    use crate::lead::Buffering;
    use crate::medium::Medium;
    use crate::open::open;
    use crate::place::Place;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    #[test]
    fn a_forked_child_writes_nothing_into_the_files_of_its_parent() {
        let disk = Arc::new(SimulatedDisk::new());
        let settings = Settings::new().segment(2048).by_hand();
        let mut core = open(Arc::clone(&disk) as Arc<dyn Medium>, settings).unwrap();
        let operations = disk.operations();
        core.pid += 1;
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 300]);
        let taken = core
            .state()
            .log
            .put_short((300, Share::Most), CommitId(1), put);
        assert!(taken.is_some());
        core.work(Work::Write);
        assert_eq!(core.state().failed, Some(AppendError::Fenced));
        assert_eq!(disk.operations(), operations);
    }

    /// It would remove frames that the parent has made count meanwhile.
    #[test]
    fn a_forked_child_removes_nothing_that_its_parent_has_written_ahead() {
        let settings = Settings::new().segment(2048).by_hand();
        let mut core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
        assert!(core.remove_ahead().is_ok());
        core.pid += 1;
        assert!(matches!(core.remove_ahead(), Err(Failure::Fenced)));
    }

    #[test]
    fn what_was_removed_is_told_and_no_other_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forest");
        let settings = Settings::new().segment(2048).by_hand();
        let medium = Arc::new(Directory::create(&path).unwrap());
        let core = open(medium as Arc<dyn Medium>, settings).unwrap();
        assert!(
            core.why_fenced()
                .starts_with("another writer has taken over")
        );
        std::fs::remove_file(path.join("lock")).unwrap();
        assert!(core.why_fenced().starts_with("the file `lock` was removed"));
        std::fs::remove_dir_all(&path).unwrap();
        assert!(core.why_fenced().starts_with("the directory was removed"));
        // What has its place now is another one.
        std::fs::create_dir(&path).unwrap();
        assert!(core.why_fenced().starts_with("the directory was removed"));
    }

    #[test]
    fn a_foreign_file_that_is_left_does_not_hide_that_the_files_were_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forest");
        let settings = Settings::new().segment(2048).by_hand();
        let medium = Arc::new(Directory::create(&path).unwrap());
        let core = open(medium as Arc<dyn Medium>, settings).unwrap();
        std::fs::write(path.join("foreign"), "").unwrap();
        std::fs::remove_file(path.join("lock")).unwrap();
        assert!(core.why_fenced().starts_with("the file `lock` was removed"));
        for file in std::fs::read_dir(&path).unwrap() {
            let name = file.unwrap().file_name();
            if name.to_str().is_some_and(|it| it.ends_with(".segment")) {
                std::fs::remove_file(path.join(name)).unwrap();
            }
        }
        assert!(path.join("foreign").exists());
        assert!(core.why_fenced().starts_with("the directory was removed"));
    }

    #[test]
    fn a_segment_of_the_history_that_is_missing_counts_as_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forest");
        let settings = Settings::new().segment(2048).by_hand();
        let medium = Arc::new(Directory::create(&path).unwrap());
        let core = open(medium as Arc<dyn Medium>, settings).unwrap();
        let first = core.state().log.chain.newest_first()[0];
        // Until it is full, written and no longer open.
        for number in 1..1000 {
            let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 300]);
            let id = CommitId(number);
            let _refused = core.state().log.put_short((300, Share::Most), id, put);
            while [Work::Prepare, Work::Write, Work::Sync]
                .into_iter()
                .any(|it| core.work(it))
            {}
            if !core.files().contains_key(&first) {
                break;
            }
        }
        assert!(!core.files().contains_key(&first));
        // A trim that ends in the middle of it leaves it, because an opening begins there.
        core.state().log.chain.trimmed = Place::begin_of(first).plus(1).position();
        std::fs::remove_file(path.join("lock")).unwrap();
        assert!(core.why_fenced().starts_with("the file `lock` was removed"));
        std::fs::remove_file(path.join(names::segment(first))).unwrap();
        assert!(core.why_fenced().starts_with("the directory was removed"));
    }

    #[test]
    fn who_waits_in_a_forked_child_is_told_at_once() {
        let settings = Settings::new().segment(2048).by_hand();
        let mut core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
        core.pid += 1;
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 300]);
        let taken = core
            .state()
            .log
            .put_short((300, Share::Most), CommitId(1), put);
        // A thread watches, so nobody leads.
        core.state().leading.is_watched = true;
        core.state().lead(taken.unwrap()).unwrap();
        let core = Arc::new(core);
        let buffered = Buffering::new(&core, taken.unwrap());
        assert_eq!(pollster::block_on(buffered), Durability::Unknown);
    }

    /// A journal in a forked child.
    fn forked() -> DiskJournal {
        let settings = Settings::new().segment(2048).by_hand();
        let mut core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
        core.pid += 1;
        DiskJournal::of(core)
    }

    #[test]
    fn a_record_without_a_place_is_refused_in_a_forked_child() {
        let journal = forked();
        for number in 1.. {
            let record = Record {
                version: Version {
                    incarnation: 1,
                    number,
                },
                id: CommitId(number.into()),
                time: SystemTime::UNIX_EPOCH,
                digest: None,
                bytes: &[7; 300],
                changes: &[],
                blobs: &[],
                erases: None,
            };
            match journal.append(&record) {
                Ok(Appended::Accepted(_)) => {}
                Ok(Appended::Sent(_)) => panic!("its author would wait for ever"),
                Err(error) => {
                    assert!(number > 1 && error == AppendError::Fenced);
                    return;
                }
            }
        }
    }

    #[test]
    fn a_follower_in_a_forked_child_is_told_that_no_more_comes() {
        let mut follower = forked().follow(Position::default());
        let mut cx = Context::from_waker(Waker::noop());
        let told = follower.poll_next(&mut cx);
        assert!(matches!(told, Poll::Ready(Err(ReadError::Failed(_)))));
    }
}
