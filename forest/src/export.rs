//! Values of attributes as a forest shows them, plain or erasable; and subtrees exported with them.

use std::time::SystemTime;

use weald_tree::Node;

use crate::content::erasable::Value;
use crate::forest::Forest;

/// The least number of nodes for which it pays to read ahead: several megabytes.
const LARGE: u64 = 1 << 14;

impl Forest {
    /// The value of an attribute, plain or erasable.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, Value};
    ///
    /// let forest = Forest::new();
    /// let people = block_on(forest.create("people"))?;
    /// let mut edit = people.edit();
    /// let root = edit.root();
    /// edit.put_erasable(root, "name", "Ada")?;
    /// block_on(edit.commit())?;
    /// let old = people.snapshot();
    /// assert_eq!(forest.value(old.tree().root(), "name").unwrap().bytes(), Some(&b"Ada"[..]));
    ///
    /// block_on(people.erase(root, "name"))?;
    /// assert!(matches!(forest.value(old.tree().root(), "name"), Some(Value::Erased { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Node::get`] and the pictures and texts that a tree makes by itself know no forest: they have the 22 bytes of
    /// the reference. [`draw`](Self::draw) and [`export`](Self::export) have what it refers to.
    pub fn value<'a>(&self, node: Node<'a>, name: &str) -> Option<Value<'a>> {
        node.get(name).map(|value| self.state().blobs.value(value))
    }

    /// Asks memory at once for all that is to be read of these nodes, and for the values of an attribute, which may be
    /// erasable. In a large forest that is in no cache of the processor, a page of twenty messages of the board takes
    /// 27 to 30 % less time with it. Of a small tree nothing is read ahead.
    ///
    /// The nodes should be those of one tree, and so few that they stay in the cache until they are read: those of a
    /// page.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::Forest;
    /// use weald::tree::Attributes;
    ///
    /// let forest = Forest::new();
    /// let people = block_on(forest.create("people"))?;
    /// let mut edit = people.edit();
    /// let ada = edit.append(edit.root(), Attributes::new())?;
    /// edit.put_erasable(ada, "name", "Ada")?;
    /// block_on(edit.commit())?;
    ///
    /// let people = people.snapshot();
    /// let page: Vec<_> = people.tree().root().children().take(20).collect();
    /// forest.prefetch(&page, "name");
    /// assert_eq!(forest.value(page[0], "name").unwrap().bytes(), Some(&b"Ada"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefetch(&self, nodes: &[Node<'_>], name: &str) {
        let is_large = |node: &Node<'_>| node.tree().len() >= LARGE;
        if !nodes.first().is_some_and(is_large) {
            return;
        }
        Node::prefetch(nodes);
        let values: Vec<_> = nodes.iter().filter_map(|node| node.get(name)).collect();
        self.state().blobs.prefetch(&values);
    }

    /// A node and all its descendants as lines of text, as [`Node::draw`] makes them, with the erasable values.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::Forest;
    ///
    /// let forest = Forest::new();
    /// let people = block_on(forest.create("people"))?;
    /// let mut edit = people.edit();
    /// edit.put_erasable(edit.root(), "name", "Ada")?;
    /// block_on(edit.commit())?;
    /// assert_eq!(forest.draw(people.view().tree().root()), "#1 name=\"Ada\" (erasable)\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn draw(&self, node: Node<'_>) -> String {
        node.draw_with(&mut |node| {
            node.label_with(|value| match self.state().blobs.value(value) {
                Value::Plain(bytes) => weald_tree::shown(bytes),
                Value::Erasable(bytes) => weald_tree::shown(&bytes) + " (erasable)",
                Value::Erased { .. } => "(erased)".to_owned(),
                Value::Elsewhere => "(erasable, elsewhere)".to_owned(),
            })
        })
    }

    /// A node and all its descendants as JSON. An erasable value is `{"erasable": value}`, with its bytes; an erased
    /// one is `{"erased": "1763780000"}`, in seconds since 1970. One whose bytes another forest has is
    /// `{"elsewhere": "erasable"}`.
    ///
    /// [`Tree::from_json`](weald_tree::Tree::from_json) reads it, makes erasable values plain, and omits those without
    /// bytes. [`Tree::from_json_with`](weald_tree::Tree::from_json_with) keeps erasable values apart, so that they can
    /// be put with [`Edit::put_erasable`](crate::Edit::put_erasable) again.
    pub fn export(&self, node: Node<'_>) -> String {
        self.export_pieces(node).collect()
    }

    /// [`export`](Self::export) as a stream of pieces of some 64 KiB. A value that is erased while the stream is read
    /// is exported as erased from then on.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::Forest;
    ///
    /// let forest = Forest::new();
    /// let teas = block_on(forest.create("teas"))?;
    /// let tree = teas.snapshot();
    /// let pieces: Vec<_> = forest.export_pieces(tree.tree().root()).collect();
    /// assert_eq!(pieces, ["{}"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_pieces<'a>(&'a self, node: Node<'a>) -> impl Iterator<Item = String> + 'a {
        node.json_pieces_with(|text, value| self.write(text, value))
    }

    fn write(&self, text: &mut String, value: &[u8]) {
        match self.state().blobs.value(value) {
            Value::Plain(bytes) => weald_tree::write_value(text, bytes),
            Value::Erasable(bytes) => {
                text.push_str("{\"erasable\":");
                weald_tree::write_value(text, &bytes);
                text.push('}');
            }
            Value::Erased { when } => {
                let since = when.duration_since(SystemTime::UNIX_EPOCH);
                let seconds = since.unwrap_or_default().as_secs();
                text.push_str(&format!("{{\"erased\":\"{seconds}\"}}"));
            }
            Value::Elsewhere => text.push_str("{\"elsewhere\":\"erasable\"}"),
        }
    }
}
