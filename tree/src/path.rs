//! Jungle's positional paths: ⟨-1,1,2,3⟩ leads from the root to its child 1, then to child 2 of that child,
//! then to child 3.
//!
//! A path is valid in one version only: after an insertion or a deletion it may lead elsewhere. A node's id
//! stays valid, so paths are for people and [`NodeId`](crate::NodeId)s are for programs.

use std::fmt;
use std::str::FromStr;

use crate::node::Node;
use crate::tree::Tree;

/// Positions from the root down, counted from 0.
///
/// ```
/// use weald::tree::Path;
///
/// let path: Path = "⟨-1,1,2,3⟩".parse()?;
/// assert_eq!(path, "-1,1,2,3".parse()?);
/// assert_eq!(path.positions(), [1, 2, 3]);
/// assert_eq!(path.to_string(), "<-1,1,2,3>");
/// assert_eq!(format!("{path:#}"), "⟨-1,1,2,3⟩");
/// # Ok::<(), weald::tree::PathError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<usize>);

/// Why a text is not a path, or a path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The text does not start with the root.
    #[error(
        "`{0}` is not a path: a path starts with the root, which is written -1, as in <-1,0,2>"
    )]
    NoRoot(String),
    /// One part of the text is not a position.
    #[error("`{0}` is not a position of a child; positions are numbers from 0")]
    NoPosition(String),
    /// The brackets do not match.
    #[error("the brackets of `{0}` do not match; write <-1,0,2> or -1,0,2")]
    Bracket(String),
    /// A node on the path has fewer children.
    #[error(
        "{path} leads nowhere in this version: level {level} asks for child {position} of {children}"
    )]
    OutOfRange {
        /// The path.
        path: Path,
        /// How many positions of the path lead to a node.
        level: usize,
        /// The position that does not.
        position: usize,
        /// How many children the node at that level has.
        children: usize,
    },
}

impl Path {
    /// The path of these positions; an empty list leads to the root.
    pub fn new(positions: Vec<usize>) -> Self {
        Self(positions)
    }

    /// The positions below the root.
    pub fn positions(&self) -> &[usize] {
        &self.0
    }
}

impl Tree {
    /// The node to which a path leads in this version.
    ///
    /// # Errors
    /// [`PathError::OutOfRange`] names the level at which there is no such child.
    pub fn at(&self, path: &Path) -> Result<Node<'_>, PathError> {
        let mut node = self.root();
        for (level, &position) in path.0.iter().enumerate() {
            node = node.child(position).ok_or_else(|| PathError::OutOfRange {
                path: path.clone(),
                level,
                position,
                children: node.child_count(),
            })?;
        }
        Ok(node)
    }
}

impl Node<'_> {
    /// Its positional path, which is valid in this version only.
    pub fn path(self) -> Path {
        let above = std::iter::once(self).chain(self.ancestors());
        let mut positions: Vec<usize> = above.map(Node::position).collect();
        positions.pop();
        positions.reverse();
        Path::new(positions)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut parts = bare(text)?.split(',').map(str::trim);
        if parts.next() != Some("-1") {
            return Err(PathError::NoRoot(text.to_owned()));
        }
        let position = |part: &str| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            let number = if is_number { part.parse().ok() } else { None };
            number.ok_or_else(|| PathError::NoPosition(part.to_owned()))
        };
        parts.map(position).collect::<Result<_, _>>().map(Self)
    }
}

/// The text without its brackets.
fn bare(text: &str) -> Result<&str, PathError> {
    let text = text.trim();
    for (open, close) in [('⟨', '⟩'), ('<', '>')] {
        match (text.strip_prefix(open), text.strip_suffix(close)) {
            (Some(rest), Some(_)) if rest.ends_with(close) => {
                return Ok(&rest[..rest.len() - close.len_utf8()]);
            }
            (None, None) => {}
            _ => return Err(PathError::Bracket(text.to_owned())),
        }
    }
    Ok(text)
}

impl fmt::Display for Path {
    /// In ASCII, or with `{:#}` in Jungle's brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [open, close] = if f.alternate() {
            ["⟨", "⟩"]
        } else {
            ["<", ">"]
        };
        write!(f, "{open}-1")?;
        for position in &self.0 {
            write!(f, ",{position}")?;
        }
        f.write_str(close)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_printed_is_parsed(positions in prop::collection::vec(any::<usize>(), 0..9)) {
            let path = Path::new(positions);
            prop_assert_eq!(path.to_string().parse(), Ok(path.clone()));
            prop_assert_eq!(format!("{path:#}").parse(), Ok(path));
        }

        #[test]
        fn no_text_breaks_the_parser(text in "[-<>⟨⟩,0-9+ ]{0,12}") {
            if let Ok(path) = text.parse::<Path>() {
                prop_assert_eq!(path.to_string().parse(), Ok(path));
            }
        }
    }

    #[test]
    fn each_mistake_has_its_error() {
        let error = |text: &str| text.parse::<Path>().expect_err("no path");
        assert_eq!(error("<0,1>"), PathError::NoRoot("<0,1>".into()));
        assert_eq!(error(""), PathError::NoRoot(String::new()));
        assert_eq!(error("-1,"), PathError::NoPosition(String::new()));
        assert_eq!(error("-1,+1"), PathError::NoPosition("+1".into()));
        assert_eq!(error("<-1,1"), PathError::Bracket("<-1,1".into()));
        assert_eq!(error("⟨-1>"), PathError::Bracket("⟨-1>".into()));
    }
}
