//! Finds the insert position, the place among siblings for a node that is added or moved. Changes nothing.

use crate::error::EditError;
use crate::id::NodeId;
use crate::key::{OrderKey, Rank};
use crate::node::Node;
use crate::operation::{Target, Where};
use crate::tree::Tree;

/// A place under a parent of one version.
pub(crate) struct InsertPosition {
    pub(crate) parent: NodeId,
    pub(crate) position: usize,
    pub(crate) key: OrderKey,
}

impl InsertPosition {
    pub(crate) fn target(&self, at: Where) -> Target {
        Target {
            at,
            parent: self.parent,
            key: self.key.clone(),
        }
    }
}

impl Tree {
    /// The insert position that `at` means in this version.
    #[inline]
    pub(crate) fn insert_position(&self, at: Where) -> Result<InsertPosition, EditError> {
        let (parent, position) = self.position_at(at)?;
        Ok(between_neighbours(parent, position))
    }

    /// The insert position in this version for the node `id`, which was at `target` in another version.
    pub(crate) fn rebased_position(
        &self,
        target: &Target,
        id: NodeId,
    ) -> Result<InsertPosition, EditError> {
        let (parent, position) = self.position_at(target.at)?;
        if let Where::AtKey(named) = target.at
            && named == target.parent
        {
            return self.recorded_position(target, id);
        }
        if parent.id != target.parent {
            return Err(match target.at {
                Where::Before(sibling) | Where::After(sibling) => EditError::SiblingMoved(sibling),
                Where::First(parent) | Where::Last(parent) | Where::AtKey(parent) => {
                    EditError::Missing(parent)
                }
            });
        }
        let rank = target.key.rank(id);
        let (left, right) = neighbours(parent, position);
        let (is_after, is_before) = (
            left.is_none_or(|left| left < rank),
            right.is_none_or(|right| rank < right),
        );
        let holds = match target.at {
            Where::First(_) | Where::Before(_) => is_before,
            Where::Last(_) | Where::After(_) | Where::AtKey(_) => is_after,
        };
        if !holds {
            return Ok(between_neighbours(parent, position));
        }
        Ok(InsertPosition {
            parent: parent.id,
            // Other nodes may have been inserted next to the place since the key was made.
            position: match is_after && is_before {
                true => position,
                false => parent.position_for(rank),
            },
            key: target.key.clone(),
        })
    }

    /// The insert position of the node `id`, whose parent and key are final.
    pub(crate) fn recorded_position(
        &self,
        target: &Target,
        id: NodeId,
    ) -> Result<InsertPosition, EditError> {
        let parent = self.node(target.parent);
        let parent = parent.ok_or(EditError::Missing(target.parent))?;
        let rank = target.key.rank(id);
        let (last, _) = neighbours(parent, parent.child_count());
        Ok(InsertPosition {
            parent: parent.id,
            // Most nodes come last.
            position: match last.is_none_or(|last| last < rank) {
                true => parent.child_count(),
                false => parent.position_for(rank),
            },
            key: target.key.clone(),
        })
    }

    /// The parent that `at` means, and the position before which the node goes.
    #[inline]
    fn position_at(&self, at: Where) -> Result<(Node<'_>, usize), EditError> {
        let there = |id| self.node(id).ok_or(EditError::Missing(id));
        let beside = |sibling| {
            let parent = there(sibling)?.parent().ok_or(EditError::IsRoot(sibling))?;
            Ok((parent, parent.position_of(sibling)))
        };
        match at {
            Where::First(parent) => Ok((there(parent)?, 0)),
            Where::Last(parent) | Where::AtKey(parent) => {
                there(parent).map(|node| (node, node.child_count()))
            }
            Where::Before(sibling) => beside(sibling),
            Where::After(sibling) => beside(sibling).map(|(parent, at)| (parent, at + 1)),
        }
    }
}

#[inline]
fn between_neighbours(parent: Node<'_>, position: usize) -> InsertPosition {
    let (left, right) = neighbours(parent, position);
    InsertPosition {
        parent: parent.id,
        position,
        key: OrderKey::between(left, right),
    }
}

/// The ranks before and after a position.
#[inline]
fn neighbours(parent: Node<'_>, position: usize) -> (Option<Rank<'_>>, Option<Rank<'_>>) {
    let rank = |at: usize| Some(parent.tree.rank(parent.links().children().get(at)?));
    (position.checked_sub(1).and_then(rank), rank(position))
}
