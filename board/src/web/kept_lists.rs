//! Lists of topics as JSON that are kept until their board changes. No list is kept unless [`Config::keeps_lists`] says
//! so, which is for measuring what the making of a list costs.
//!
//! Invariant: a list is found only by the newest version of its board, and only if nothing was erased since it was
//! made: on a full disk an erasure makes no version. The first look after an erasure forgets all lists.
//!
//! [`Config::keeps_lists`]: super::config::Config::keeps_lists

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use weald::forest::Version;

use crate::model::{BoardAt, BoardName, Boards};

/// How many lists are kept; beyond that all are forgotten.
const MOST: usize = 1_024;

/// The lists of all boards.
pub(crate) struct KeptLists {
    boards: Boards,
    /// `None` if no list is kept.
    kept: Option<Mutex<Lists>>,
}

#[derive(Default)]
struct Lists {
    /// How much was erased when the lists were made.
    erasures: u64,
    /// By the board and the number of the page.
    lists: HashMap<(BoardName, usize), (Version, Bytes)>,
}

impl KeptLists {
    pub(crate) fn new(boards: Boards, keeps: bool) -> Self {
        let kept = keeps.then(Mutex::default);
        Self { boards, kept }
    }

    /// A page of topics of this version, if it was kept; else as `make` makes it.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn find_or<E>(
        &self,
        board: &BoardAt,
        page: usize,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let Some(kept) = self.kept.as_ref().filter(|_| !board.is_past()) else {
            return make().map(Bytes::from);
        };
        let key = (board.name().clone(), page);
        let version = board.version();
        // Before a text is read: what is erased later is counted later.
        let erasures = self.boards.erasures();
        if let Some(list) = lock(kept).find(&key, version, erasures) {
            return Ok(list);
        }
        let list = Bytes::from(make()?);
        lock(kept).keep(key, (version, list.clone()), erasures);
        Ok(list)
    }
}

impl Lists {
    fn find(&mut self, key: &(BoardName, usize), version: Version, erasures: u64) -> Option<Bytes> {
        if self.erasures < erasures {
            self.erasures = erasures;
            self.lists.clear();
        }
        let (of, list) = self.lists.get(key)?;
        (*of == version).then(|| list.clone())
    }

    fn keep(&mut self, key: (BoardName, usize), list: (Version, Bytes), erasures: u64) {
        if self.erasures != erasures {
            return;
        }
        if self.lists.len() >= MOST {
            self.lists.clear();
        }
        self.lists.insert(key, list);
    }
}

fn lock(kept: &Mutex<Lists>) -> MutexGuard<'_, Lists> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::task::Poll;
    use std::time::{Duration, Instant};

    use weald::forest::disk::DiskForest;
    use weald::forest::{Forest, Value};

    use crate::model::{BoardError, Requester};
    use crate::model::{Body, By, Draft, Kind, Measure, NewMessage, Store, Target};

    use super::*;

    /// Polls an erasure until something is erased. Then its asker goes away, and it is noted all the same.
    async fn is_noted_without_asker<T>(
        boards: &Boards,
        erasing: impl Future<Output = T>,
        is_erased: impl Fn() -> bool,
    ) {
        let before = boards.erasures();
        let mut erasing = Box::pin(erasing);
        poll_fn(|cx| {
            assert!(erasing.as_mut().poll(cx).is_pending());
            match is_erased() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        drop(erasing);
        let begun = Instant::now();
        while boards.erasures() == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody noted it");
            weald::sleep(Duration::from_millis(1)).await;
        }
    }

    #[test]
    fn an_erasure_makes_lists_anew_even_if_it_makes_no_version() {
        weald::block_on(async {
            let boards = Boards::of(Store::Memory(Forest::new())).await.unwrap();
            let name = boards.create("Tea", "", None).await.unwrap();
            let board = boards.board(&name).unwrap();
            let lists = KeptLists::new(boards.clone(), true);
            let find = |text: &str| {
                let make = || Ok::<_, BoardError>(text.as_bytes().to_vec());
                lists.find_or(&board, 1, make).unwrap()
            };
            assert_eq!(find("before"), "before");
            assert_eq!(find("again"), "before", "it was kept");
            boards.note_erasure();
            assert_eq!(find("after"), "after");
            // A list whose texts were read before an erasure that ends before it is kept.
            let slow = || {
                boards.note_erasure();
                Ok::<_, BoardError>(b"erased".to_vec())
            };
            let slow = lists.find_or(&board, 2, slow).unwrap();
            assert_eq!(slow, "erased", "its asker was there before");
            let make = || Ok::<_, BoardError>(b"new".to_vec());
            assert_eq!(lists.find_or(&board, 2, make).unwrap(), "new");
        });
    }

    #[test]
    fn an_erasure_whose_asker_goes_away_makes_lists_anew() {
        weald::block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let forest = DiskForest::open(directory.path()).await.unwrap();
            let boards = Boards::of(Store::Disk(forest)).await.unwrap();
            let name = boards.create("Tea", "", None).await.unwrap();
            let requester = Requester::of_secret("Ada");
            let [author, title, text] = ["Ada", "Tea", "insult"].map(str::to_owned);
            let post = Draft {
                author,
                title,
                text,
            };
            let message = NewMessage {
                parent: None,
                post: post.check(Kind::Topic).unwrap(),
                requester,
                token: None,
            };
            let id = boards.write(&name, message).await.unwrap().id;
            let board = boards.board(&name).unwrap();
            let lists = KeptLists::new(boards.clone(), true);
            let find = |text: &str| {
                let make = || Ok::<_, BoardError>(text.as_bytes().to_vec());
                lists.find_or(&board, 1, make).unwrap()
            };
            assert_eq!(find("before"), "before");
            let target = Target {
                board: &name,
                id,
                requester,
            };
            let is_erased = || {
                let now = boards.board(&name).unwrap();
                matches!(now.message(id).unwrap().body, Body::Erased(_))
            };
            is_noted_without_asker(&boards, boards.erase(target), is_erased).await;
            assert_eq!(find("after"), "after");
            let by = By {
                who: "Grace",
                why: "the law",
                token: None,
            };
            let erasing = boards.moderate_board(&name, Measure::Erase, by);
            let is_erased = || {
                let root = board.snapshot().tree().root();
                let title = boards.0.store.trees().value(root, "title");
                matches!(title, Some(Value::Erased { .. }))
            };
            is_noted_without_asker(&boards, erasing, is_erased).await;
            assert_eq!(find("at last"), "at last");
            boards.close().await;
        });
    }
}
