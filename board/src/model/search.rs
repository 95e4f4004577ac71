//! Search: the words of a board's messages, brought up to date with the difference between two versions when somebody
//! searches.
//!
//! - An index of the forest has one value for each node, and no erasable ones. So the words are kept beside it, in
//!   memory, and only for boards that are searched.
//! - The index may have more than a version has: whatever it finds is looked up in the version that the request names.
//!   So all pages of a search are of one version.

use std::sync::Arc;

use weald::forest::NodeId;
use weald::sync::Mutex;

use super::board_at::{BoardAt, pages};
use super::boards::Boards;
use super::error::BoardError;
use super::message::Message;
use super::name::BoardName;
use super::pages::Pages;
use super::search_index::{SearchIndex, has_all, words};

/// How many messages are on a page of results.
pub const FOUND: usize = 20;

/// How many messages a search finds at most, the newest of all.
pub const MOST_FOUND: usize = 500;

/// How many words of a query are looked at.
const MOST_WORDS: usize = 8;

impl Boards {
    /// A page of the messages that have words which begin with each word of the query, the newest first.
    ///
    /// # Errors
    /// [`BoardError::NoPage`], if there is no such page.
    pub async fn search(
        &self,
        board: &BoardAt,
        query: &str,
        page: usize,
    ) -> Result<(Vec<Message>, Pages), BoardError> {
        let sought: Vec<_> = words(query).take(MOST_WORDS).collect();
        let newest = self.board(board.name())?;
        let index = self.index_of(board.name()).await;
        let mut index = index.lock().await;
        index.catch_up(&newest);
        let candidates = index.find(&sought);
        drop(index);
        let is_found = |message: &Message| {
            let post = message.post();
            post.is_some_and(|post| has_all(post, &sought))
        };
        let read = candidates
            .iter()
            .rev()
            .filter_map(|id| board.message(*id).ok());
        let found: Vec<_> = read.filter(is_found).take(MOST_FOUND).collect();
        let pages = pages(page, FOUND, found.len())?;
        Ok((found[pages.range()].to_vec(), pages))
    }

    /// Forgets the words of a message that was erased.
    pub(crate) async fn forget(&self, board: &BoardName, id: NodeId) {
        let index = self.index_of(board).await;
        index.lock().await.forget(id);
    }

    async fn index_of(&self, board: &BoardName) -> Arc<Mutex<SearchIndex>> {
        let mut all = self.0.searches.lock().await;
        Arc::clone(all.entry(board.clone()).or_default())
    }
}
