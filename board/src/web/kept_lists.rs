//! Lists of topics as JSON that are kept until their board changes. No list is kept unless [`Config::keeps_lists`] says
//! so, which is for measuring what the making of a list costs.
//!
//! Invariant: a list is found only by the newest version of its board. So after an erasure it is not found either; but
//! its bytes stay in memory until another list takes their place.
//!
//! [`Config::keeps_lists`]: super::config::Config::keeps_lists

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use weald::forest::Version;

use crate::model::{BoardAt, BoardName};

/// How many lists are kept; beyond that all are forgotten.
const MOST: usize = 1_024;

/// The lists of all boards.
pub(crate) struct KeptLists(Option<Mutex<Lists>>);

/// The lists by the board and the number of the page.
type Lists = HashMap<(BoardName, usize), (Version, Bytes)>;

impl KeptLists {
    pub(crate) fn new(keeps: bool) -> Self {
        Self(keeps.then(Mutex::default))
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
        let Some(lists) = self.0.as_ref().filter(|_| !board.is_past()) else {
            return make().map(Bytes::from);
        };
        let key = (board.name().clone(), page);
        let version = board.version();
        if let Some((_, list)) = lock(lists).get(&key).filter(|it| it.0 == version) {
            return Ok(list.clone());
        }
        let list = Bytes::from(make()?);
        let mut lists = lock(lists);
        if lists.len() >= MOST {
            lists.clear();
        }
        lists.insert(key, (version, list.clone()));
        Ok(list)
    }
}

fn lock(lists: &Mutex<Lists>) -> MutexGuard<'_, Lists> {
    lists.lock().unwrap_or_else(PoisonError::into_inner)
}
