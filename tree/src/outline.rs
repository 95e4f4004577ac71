//! Walks that know how deep they are, and may leave out what is below a node.

use crate::node::Node;
use crate::siblings::Siblings;

impl<'t> Node<'t> {
    /// This node and everything below it, parents before children, each with its depth; this node's is 0.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_json(r#"{"children": [{"children": [{}]}, {}]}"#)?;
    /// let depths = |outline: weald::tree::Outline<'_>| outline.map(|(depth, _)| depth).collect::<Vec<_>>();
    /// assert_eq!(depths(tree.root().outline()), [0, 1, 2, 1]);
    /// assert_eq!(depths(tree.root().outline().to_depth(1)), [0, 1, 1]);
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    pub fn outline(self) -> Outline<'t> {
        Outline {
            first: Some(self),
            open: Vec::new(),
            last: None,
            most: usize::MAX,
        }
    }
}

/// Nodes with their depths, parents before children. See [`Node::outline`].
#[derive(Clone)]
pub struct Outline<'t> {
    first: Option<Node<'t>>,
    /// The rest of the children of each node above the next one.
    open: Vec<Siblings<'t>>,
    /// The node that was yielded last, whose children come next.
    last: Option<Node<'t>>,
    most: usize,
}

impl Outline<'_> {
    /// Only nodes that are at most this deep.
    #[must_use]
    pub fn to_depth(mut self, depth: usize) -> Self {
        self.most = depth;
        self
    }

    /// Leaves out what is below the node that was yielded last.
    pub fn skip_below(&mut self) {
        self.last = None;
    }
}

impl<'t> Iterator for Outline<'t> {
    type Item = (usize, Node<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            self.last = Some(first);
            return Some((0, first));
        }
        if let Some(last) = self.last.take()
            && self.open.len() < self.most
            && last.is_parent()
        {
            self.open.push(last.children());
        }
        while let Some(left) = self.open.last_mut() {
            if let Some(node) = left.next() {
                self.last = Some(node);
                return Some((self.open.len(), node));
            }
            self.open.pop();
        }
        None
    }
}
