//! Finding nodes: through the index of the leading attribute, in its order and lazily; otherwise through other indexes
//! or by a walk, after which all found nodes are sorted.

use std::collections::HashSet;
use std::fmt;

use weald_tree::{Change, Climb, EditError, Node, NodeId, Tree};

use super::query::{Condition, Query, Values};
use crate::content::index::Indexes;
use crate::content::sorted::{Key, Keys, KeysBack};
use crate::edit::Edit;
use crate::state::root::Root;

/// Another index is used instead of the leading one if it yields this many times fewer nodes.
const FEWER: usize = 8;

/// How many nodes more than a query wants are collected before the surplus is dropped.
const SURPLUS: usize = 1024;

/// How a query is answered. See [`Root::explain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// Through indexes.
    Index {
        /// How many nodes the indexes yield. Those that do not meet the other conditions are filtered out later.
        candidates: usize,
    },
    /// By a look at each node.
    Walk {
        /// How many nodes the version has; a query for a subtree walks fewer.
        nodes: u64,
    },
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { candidates } => {
                write!(f, "through the index; candidates: {candidates}")
            }
            Self::Walk { nodes } => write!(
                f,
                "by a walk over up to {nodes} nodes, because the attribute has no index"
            ),
        }
    }
}

fn is_in_place(climb: &mut Option<Climb>, node: Node<'_>) -> bool {
    climb
        .as_mut()
        .is_none_or(|climb| climb.from(node).is_some())
}

/// How many nodes the indexes yield for a condition; `None`, if they do not yield all that meet it.
fn candidates(condition: &Condition, indexes: &Indexes) -> Option<usize> {
    match condition {
        Condition::In(values) => count(values, indexes),
        Condition::All(all) => all.iter().filter_map(|one| candidates(one, indexes)).min(),
        Condition::Any(all) => all.iter().map(|one| candidates(one, indexes)).sum(),
    }
}

/// How many nodes the index of an attribute yields; `None`, if it has none.
fn count(values: &Values, indexes: &Indexes) -> Option<usize> {
    let keys = &indexes.get(&values.attribute)?.keys;
    let begin = keys.before(&|key| values.is_begun(&key.value));
    let end = keys.before(&|key| values.is_over(&key.value));
    Some(end.saturating_sub(begin))
}

/// Collects the nodes that the indexes yield for a condition.
fn collect(condition: &Condition, indexes: &Indexes, found: &mut HashSet<NodeId>) {
    match condition {
        Condition::In(values) => {
            let Some(index) = indexes.get(&values.attribute) else {
                return;
            };
            let keys = index.keys.from(&|key| values.is_begun(&key.value));
            let keys = keys.take_while(|key| !values.is_over(&key.value));
            found.extend(keys.map(|key| key.node));
        }
        Condition::All(all) => {
            let counted = all
                .iter()
                .filter_map(|one| Some((candidates(one, indexes)?, one)));
            if let Some((_, least)) = counted.min_by_key(|(count, _)| *count) {
                collect(least, indexes, found);
            }
        }
        Condition::Any(all) => all.iter().for_each(|one| collect(one, indexes, found)),
    }
}

/// The values of the leading attribute, if all that is sought has one of them.
fn leading(condition: &Condition) -> Option<&Values> {
    match condition {
        Condition::In(values) => Some(values),
        Condition::All(all) => leading(&all[0]),
        Condition::Any(_) => None,
    }
}

impl Root {
    /// The nodes that a query asks for, sorted by the value of the leading attribute and then by id. None, if this
    /// version does not have the node that the query is [`under`](Query::under).
    ///
    /// If the leading attribute has an index, the cost grows with the nodes up to the last one that is taken; otherwise
    /// all found nodes are collected first.
    pub fn find<'a>(&'a self, query: &'a Query) -> Found<'a> {
        let way = match self.in_order(query) {
            Some(way) => way,
            None => Way::Sorted(self.sorted(query).into_iter()),
        };
        Found {
            query,
            tree: &self.tree,
            way,
            left: query.limit.unwrap_or(usize::MAX),
        }
    }

    /// The values of the leading attribute, unless it has no index, or another index yields far fewer nodes.
    fn leading<'a>(&self, query: &'a Query) -> Option<&'a Values> {
        let values = leading(&query.condition)?;
        self.all_indexes().get(&values.attribute)?;
        if let Condition::All(_) = &query.condition {
            let of_leading = count(values, self.all_indexes())?;
            let least = candidates(&query.condition, self.all_indexes())?;
            if of_leading / FEWER > least {
                return None;
            }
        }
        Some(values)
    }

    /// Through the index of the leading attribute.
    fn in_order<'a>(&'a self, query: &'a Query) -> Option<Way<'a>> {
        let values = self.leading(query)?;
        let keys = &self.all_indexes().get(&values.attribute)?.keys;
        let is_begun = |key: &Key| values.is_begun(&key.value);
        let is_over = |key: &Key| values.is_over(&key.value);
        let is_after = |key: &Key| query.is_after((Some(&key.value), key.node));
        Some(if query.is_reversed {
            let keys = keys.back_from(&|key| is_over(key) || !is_after(key));
            Way::Back(keys, values, query.climb())
        } else {
            let keys = keys.from(&|key| is_begun(key) && is_after(key));
            Way::Index(keys, values, query.climb())
        })
    }

    /// All nodes that a query asks for, found in any order and then sorted.
    fn sorted<'a>(&'a self, query: &Query) -> Vec<Node<'a>> {
        let mut found = Vec::new();
        let most = query
            .limit
            .map_or(usize::MAX, |limit| limit.saturating_add(SURPLUS));
        let mut add = |node: Node<'a>| {
            found.push(node);
            if found.len() > most {
                query.cut(&mut found);
            }
        };
        if candidates(&query.condition, self.all_indexes()).is_some() {
            let mut ids = HashSet::new();
            collect(&query.condition, self.all_indexes(), &mut ids);
            let mut climb = query.climb();
            let nodes = ids.into_iter().filter_map(|id| self.tree.node(id));
            nodes
                .filter(|node| query.is_met_by(*node) && is_in_place(&mut climb, *node))
                .for_each(&mut add);
        } else {
            let first = query
                .under
                .map_or(Some(self.tree.root()), |id| self.tree.node(id));
            let nodes = first.into_iter().flat_map(Node::preorder);
            nodes
                .filter(|node| query.is_met_by(*node))
                .for_each(&mut add);
        }
        query.cut(&mut found);
        found
    }

    /// How [`find`](Self::find) answers a query.
    pub fn explain(&self, query: &Query) -> Plan {
        let through = |candidates| Plan::Index { candidates };
        let walk = Plan::Walk {
            nodes: self.tree.len(),
        };
        // In order, the leading index is walked, although another one may yield slightly fewer nodes.
        let leading = self
            .leading(query)
            .and_then(|values| count(values, self.all_indexes()));
        let candidates = leading.or_else(|| candidates(&query.condition, self.all_indexes()));
        candidates.map_or(walk, through)
    }

    /// The attributes that have an index in this version, in the order in which the indexes were added.
    pub fn indexes(&self) -> impl Iterator<Item = &str> {
        self.all_indexes()
            .all()
            .iter()
            .map(|index| &*index.attribute)
    }
}

impl Edit {
    /// The nodes of the working version that a query asks for, in its order; recorded as a read of the whole subtree
    /// that is queried. What the edit changed is found as changed; the rest is found through the indexes of the base.
    ///
    /// # Errors
    /// `Missing`, if the working version does not have the node that the query is [`under`](Query::under).
    pub fn find(&self, query: &Query) -> Result<Vec<NodeId>, EditError> {
        let under = query.under.unwrap_or_else(|| self.root());
        self.subtree(under)?;
        let (base, tree) = (self.base(), self.tree());
        let mut changed = HashSet::new();
        let mut found = Vec::new();
        let mut climb = query.climb();
        let mut sought = |node: &Node<'_>| query.is_met_by(*node) && is_in_place(&mut climb, *node);
        for change in base.tree.diff(tree) {
            changed.insert(change.id());
            if let Change::Added(new) | Change::Changed { new, .. } = change {
                found.extend(Some(new).filter(&mut sought));
            }
        }
        // An unchanged node may have entered or left the subtree with one of its ancestors, so its place is
        // looked up in the working version.
        let anywhere = Query {
            under: None,
            limit: None,
            after: None,
            ..query.clone()
        };
        let same = base
            .find(&anywhere)
            .map(Node::id)
            .filter(|id| !changed.contains(id));
        found.extend(same.filter_map(|id| tree.node(id)).filter(sought));
        query.cut(&mut found);
        Ok(found.into_iter().map(Node::id).collect())
    }
}

/// The nodes that a query finds. See [`Root::find`].
#[derive(Clone)]
pub struct Found<'a> {
    query: &'a Query,
    tree: &'a Tree,
    way: Way<'a>,
    /// How many may still be yielded.
    left: usize,
}

#[derive(Clone)]
enum Way<'a> {
    Index(Keys<'a>, &'a Values, Option<Climb>),
    Back(KeysBack<'a>, &'a Values, Option<Climb>),
    Sorted(std::vec::IntoIter<Node<'a>>),
}

impl<'a> Iterator for Found<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        self.left = self.left.checked_sub(1)?;
        let Self {
            query, tree, way, ..
        } = self;
        let is_sought = |climb: &mut Option<Climb>, node: &Node<'a>| {
            query.is_met_by(*node) && is_in_place(climb, *node)
        };
        match way {
            Way::Sorted(nodes) => nodes.next(),
            Way::Index(keys, values, climb) => {
                let keys = keys.take_while(|key| !values.is_over(&key.value));
                let mut nodes = keys.filter_map(|key| tree.node(key.node));
                nodes.find(|node| is_sought(climb, node))
            }
            Way::Back(keys, values, climb) => {
                let keys = keys.take_while(|key| values.is_begun(&key.value));
                let mut nodes = keys.filter_map(|key| tree.node(key.node));
                nodes.find(|node| is_sought(climb, node))
            }
        }
    }
}
