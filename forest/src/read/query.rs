//! Finding nodes by an attribute: through an index if the version has one, otherwise by a walk.

use std::collections::HashSet;
use std::fmt;
use std::ops::{Bound, RangeBounds};

use weald_tree::{Change, Climb, EditError, Node, NodeId, Tree};

use crate::content::erasable::is_reference;
use crate::content::sorted::{Key, Keys};
use crate::edit::Edit;
use crate::state::root::Root;

/// Which nodes to find: those whose attribute has a value in a range. Erasable values are not found.
///
/// ```
/// use pollster::block_on;
/// use weald_forest::{Attributes, Forest, Plan, Query};
///
/// let people = block_on(Forest::new().create("people"))?;
/// block_on(people.add_index("name"))?;
/// let mut edit = people.edit();
/// let root = edit.root();
/// for name in ["Ada", "Alan", "Grace"] {
///     edit.append(root, Attributes::new().with("name", name))?;
/// }
/// block_on(edit.commit())?;
///
/// let view = people.view();
/// let query = Query::prefix("name", "A");
/// assert_eq!(view.find(&query).count(), 2);
/// assert_eq!(view.explain(&query), Plan::Index { candidates: 2 });
/// assert_eq!(view.explain(&Query::equal("born", "1815")), Plan::Walk { nodes: 4 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    attribute: String,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    under: Option<NodeId>,
}

/// How a query is answered. See [`Root::explain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// Through the index of the attribute.
    Index {
        /// How many nodes the index yields. Those outside the queried subtree are filtered out later.
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

impl Query {
    /// The nodes whose attribute is `value`.
    pub fn equal(attribute: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref().to_vec();
        Self::new(
            attribute,
            Bound::Included(value.clone()),
            Bound::Included(value),
        )
    }

    /// The nodes whose attribute begins with `prefix`.
    pub fn prefix(attribute: &str, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref().to_vec();
        // The least string after all that have the prefix: without trailing bytes 255, the last byte raised.
        let mut end = prefix.clone();
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        let to = match end.last_mut() {
            None => Bound::Unbounded,
            Some(last) => {
                *last += 1;
                Bound::Excluded(end)
            }
        };
        Self::new(attribute, Bound::Included(prefix), to)
    }

    /// The nodes whose attribute is in a range, in the order of bytes.
    pub fn range<T: AsRef<[u8]>>(attribute: &str, range: impl RangeBounds<T>) -> Self {
        let bound = |bound: Bound<&T>| bound.map(|value| value.as_ref().to_vec());
        Self::new(
            attribute,
            bound(range.start_bound()),
            bound(range.end_bound()),
        )
    }

    fn new(attribute: &str, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>) -> Self {
        Self {
            attribute: attribute.to_owned(),
            from,
            to,
            under: None,
        }
    }

    /// Only this node and its descendants.
    #[must_use]
    pub fn under(mut self, node: NodeId) -> Self {
        self.under = Some(node);
        self
    }

    fn is_begun(&self, value: &[u8]) -> bool {
        match &self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => value >= &**from,
            Bound::Excluded(from) => value > &**from,
        }
    }

    fn is_over(&self, value: &[u8]) -> bool {
        match &self.to {
            Bound::Unbounded => false,
            Bound::Included(to) => value > &**to,
            Bound::Excluded(to) => value >= &**to,
        }
    }

    fn is_met_by(&self, node: Node<'_>) -> bool {
        let is_met = |value| self.is_begun(value) && !self.is_over(value) && !is_reference(value);
        node.get(&self.attribute).is_some_and(is_met)
    }

    /// Checks whether nodes of one version are in the queried subtree; `None`, if they may be anywhere.
    fn climb(&self) -> Option<Climb> {
        self.under.map(|above| Climb::to([above]))
    }
}

fn is_in_place(climb: &mut Option<Climb>, node: Node<'_>) -> bool {
    climb
        .as_mut()
        .is_none_or(|climb| climb.from(node).is_some())
}

impl Root {
    /// The nodes that a query asks for: in the order of their values if there is an index, otherwise in document
    /// order. None, if this version does not have the node that the query is [`under`](Query::under).
    pub fn find<'a>(&'a self, query: &'a Query) -> Found<'a> {
        let keys = self.indexes.get(&query.attribute).map(|index| {
            let is_begun = |key: &Key| query.is_begun(&key.value);
            index.keys.from(&is_begun)
        });
        let way = match keys {
            Some(keys) => Way::Index(keys, query.climb()),
            None => {
                let first = query
                    .under
                    .map_or(Some(self.tree.root()), |id| self.tree.node(id));
                Way::Walk(first.map(Node::preorder))
            }
        };
        let tree = &self.tree;
        Found { query, tree, way }
    }

    /// How [`find`](Self::find) answers a query.
    pub fn explain(&self, query: &Query) -> Plan {
        match self.indexes.get(&query.attribute) {
            None => Plan::Walk {
                nodes: self.tree.len(),
            },
            Some(index) => {
                let begin = index.keys.before(&|key| query.is_begun(&key.value));
                let end = index.keys.before(&|key| query.is_over(&key.value));
                Plan::Index {
                    candidates: end.saturating_sub(begin),
                }
            }
        }
    }

    /// The attributes that have an index in this version, in the order in which the indexes were added.
    pub fn indexes(&self) -> impl Iterator<Item = &str> {
        self.indexes.all().iter().map(|index| &*index.attribute)
    }
}

impl Edit {
    /// The nodes of the working version that a query asks for; recorded as a read of the whole subtree that is
    /// queried. What the edit changed is found as changed; the rest is found through the index of the base.
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
                found.extend(Some(new).filter(&mut sought).map(Node::id));
            }
        }
        // An unchanged node may have entered or left the subtree with one of its ancestors, so its place is
        // looked up in the working version.
        let anywhere = Query {
            under: None,
            ..query.clone()
        };
        let same = base
            .find(&anywhere)
            .map(Node::id)
            .filter(|id| !changed.contains(id));
        let same = same.filter_map(|id| tree.node(id)).filter(sought);
        found.extend(same.map(Node::id));
        Ok(found)
    }
}

/// The nodes that a query finds. It finds them lazily.
#[derive(Clone)]
pub struct Found<'a> {
    query: &'a Query,
    tree: &'a Tree,
    way: Way<'a>,
}

#[derive(Clone)]
enum Way<'a> {
    Index(Keys<'a>, Option<Climb>),
    Walk(Option<weald_tree::Preorder<'a>>),
}

impl<'a> Iterator for Found<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        let Self { query, tree, way } = self;
        match way {
            Way::Walk(nodes) => nodes.as_mut()?.find(|node| query.is_met_by(*node)),
            Way::Index(keys, climb) => {
                let keys = keys.take_while(|key| !query.is_over(&key.value));
                let mut nodes = keys.filter_map(|key| tree.node(key.node));
                nodes.find(|node| is_in_place(climb, *node))
            }
        }
    }
}
