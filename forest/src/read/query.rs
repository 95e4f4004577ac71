//! What to find: conditions on attributes, an order, and which part of the result.
//!
//! The result is sorted by the value of the leading attribute, which is the one with which the query was begun, and
//! then by the ids of the nodes. Nodes without that attribute come first. So the order is the same with and without an
//! index, and a place in it means the same in every version.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use weald_tree::{Climb, Node, NodeId};

use crate::content::erasable::is_reference;

/// Which nodes to find: those whose attributes have values in ranges. Erasable values are not found.
///
/// ```
/// use weald::block_on;
/// use weald::forest::{Attributes, Forest, Plan, Query};
///
/// let people = block_on(Forest::new().create("people"))?;
/// block_on(people.add_index("name"))?;
/// let mut edit = people.edit();
/// let root = edit.root();
/// for (name, field) in [("Ada", "analysis"), ("Alan", "logic"), ("Grace", "compilers")] {
///     edit.append(root, Attributes::new().with("name", name).with("field", field))?;
/// }
/// block_on(edit.commit())?;
///
/// let view = people.view();
/// let query = Query::prefix("name", "A");
/// assert_eq!(view.find(&query).count(), 2);
/// assert_eq!(view.explain(&query), Plan::Index { candidates: 2 });
/// assert_eq!(view.explain(&Query::equal("field", "logic")), Plan::Walk { nodes: 4 });
///
/// // One page after the other, the last name first.
/// let query = Query::prefix("name", "").and(Query::range("field", "c"..)).reverse().limit(1);
/// let page: Vec<_> = view.find(&query).collect();
/// assert_eq!(page[0].get_str("name"), Some("Grace"));
/// let query = query.clone().after(query.cursor(page[0]));
/// assert_eq!(view.find(&query).next().unwrap().get_str("name"), Some("Alan"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub(super) condition: Condition,
    pub(super) under: Option<NodeId>,
    pub(super) is_reversed: bool,
    pub(super) limit: Option<usize>,
    pub(super) after: Option<Cursor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    In(Values),
    /// All hold; the first one leads.
    All(Vec<Condition>),
    /// One holds; the first one leads.
    Any(Vec<Condition>),
}

/// The values of an attribute between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) attribute: String,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

/// A place in the order of a query, after a node that was found. It means the same in every version, even when that
/// node is gone. As text it may be sent to a client and read back.
///
/// ```
/// use weald::forest::{Cursor, NodeId};
///
/// let cursor: Cursor = "7.416461".parse()?;
/// assert_eq!(cursor.node(), NodeId::new(7).unwrap());
/// assert_eq!(cursor.to_string(), "7.416461");
/// # Ok::<(), weald::forest::NotACursor>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    value: Option<Vec<u8>>,
    node: NodeId,
}

/// The text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor; begin without one, or send one back as it was given")]
pub struct NotACursor;

/// Where a node is in the order of a query.
pub(super) type InOrder<'a> = (Option<&'a [u8]>, NodeId);

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
            condition: Condition::In(Values {
                attribute: attribute.to_owned(),
                from,
                to,
            }),
            under: None,
            is_reversed: false,
            limit: None,
            after: None,
        }
    }

    /// Only the nodes that meet the conditions of both. Only the conditions of `other` count.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.condition = match self.condition {
            Condition::All(mut all) => {
                all.push(other.condition);
                Condition::All(all)
            }
            one => Condition::All(vec![one, other.condition]),
        };
        self
    }

    /// The nodes that meet the conditions of at least one of them. Only the conditions of `other` count.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.condition = match self.condition {
            Condition::Any(mut all) => {
                all.push(other.condition);
                Condition::Any(all)
            }
            one => Condition::Any(vec![one, other.condition]),
        };
        self
    }

    /// Only this node and its descendants.
    #[must_use]
    pub fn under(mut self, node: NodeId) -> Self {
        self.under = Some(node);
        self
    }

    /// The other way round: the greatest value first, and among nodes with the same value the greatest id.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.is_reversed = !self.is_reversed;
        self
    }

    /// At most this many nodes, the first ones.
    #[must_use]
    pub fn limit(mut self, nodes: usize) -> Self {
        self.limit = Some(nodes);
        self
    }

    /// Only the nodes after a place, in the direction of this query.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// The place after a node, for the next page.
    pub fn cursor(&self, node: Node<'_>) -> Cursor {
        let (value, node) = self.place(node);
        Cursor {
            value: value.map(<[u8]>::to_vec),
            node,
        }
    }

    /// The attribute whose values give the order.
    pub(super) fn leading(&self) -> &str {
        &self.condition.leading().attribute
    }

    pub(super) fn place<'a>(&self, node: Node<'a>) -> InOrder<'a> {
        (visible(node, self.leading()), node.id())
    }

    /// Whether a place comes after the cursor, in the direction of this query.
    pub(super) fn is_after(&self, place: InOrder<'_>) -> bool {
        self.after.as_ref().is_none_or(|cursor| {
            let begin = (cursor.value.as_deref(), cursor.node);
            if self.is_reversed {
                place < begin
            } else {
                place > begin
            }
        })
    }

    pub(super) fn is_met_by(&self, node: Node<'_>) -> bool {
        self.condition.is_met_by(node)
    }

    /// Checks whether nodes of one version are in the queried subtree; `None`, if they may be anywhere.
    pub(super) fn climb(&self) -> Option<Climb> {
        self.under.map(|above| Climb::to([above]))
    }

    /// Sorts the found nodes as this query wants, and keeps those that it asks for.
    pub(super) fn cut<'a>(&self, found: &mut Vec<Node<'a>>) {
        found.retain(|node| self.is_after(self.place(*node)));
        found.sort_by_cached_key(|node| self.place(*node));
        if self.is_reversed {
            found.reverse();
        }
        found.truncate(self.limit.unwrap_or(usize::MAX));
    }
}

/// The value of an attribute, unless it is erasable.
fn visible<'a>(node: Node<'a>, attribute: &str) -> Option<&'a [u8]> {
    node.get(attribute).filter(|value| !is_reference(value))
}

impl Condition {
    pub(super) fn leading(&self) -> &Values {
        match self {
            Self::In(values) => values,
            Self::All(all) | Self::Any(all) => all[0].leading(),
        }
    }

    fn is_met_by(&self, node: Node<'_>) -> bool {
        match self {
            Self::In(values) => values.are_met_by(node),
            Self::All(all) => all.iter().all(|one| one.is_met_by(node)),
            Self::Any(all) => all.iter().any(|one| one.is_met_by(node)),
        }
    }
}

impl Values {
    fn are_met_by(&self, node: Node<'_>) -> bool {
        let is_met = |value: &[u8]| self.is_begun(value) && !self.is_over(value);
        visible(node, &self.attribute).is_some_and(is_met)
    }

    pub(super) fn is_begun(&self, value: &[u8]) -> bool {
        match &self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => value >= &**from,
            Bound::Excluded(from) => value > &**from,
        }
    }

    pub(super) fn is_over(&self, value: &[u8]) -> bool {
        match &self.to {
            Bound::Unbounded => false,
            Bound::Included(to) => value > &**to,
            Bound::Excluded(to) => value >= &**to,
        }
    }
}

impl Cursor {
    /// The last node before this place.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

/// The id, and the bytes of the value in hexadecimal digits after a dot.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.node.get())?;
        if let Some(value) = &self.value {
            f.write_str(".")?;
            value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (node, digits) = match text.split_once('.') {
            Some((node, digits)) => (node, Some(digits)),
            None => (text, None),
        };
        let node = node.parse().ok().and_then(NodeId::new).ok_or(NotACursor)?;
        let value = digits.map(bytes_of).transpose()?;
        Ok(Self { value, node })
    }
}

fn bytes_of(digits: &str) -> Result<Vec<u8>, NotACursor> {
    let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(NotACursor);
    let byte = |pair: &[u8]| match pair {
        [a, b] => u8::try_from(16 * digit(*a)? + digit(*b)?).map_err(|_| NotACursor),
        _ => Err(NotACursor),
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}
