//! A tree of persistent nodes: building, counting, and path copying from the root.

use std::sync::Arc;

use super::library::{Library, Value};

/// How many children the nodes of each level have, from the root downwards.
pub(crate) type Shape = &'static [usize];

/// A node; a tree is its root.
pub(crate) struct Node<L: Library> {
    attributes: L::Attributes,
    pub(crate) children: L::Children,
}

/// Where a node is: positions from the root downwards. Appending changes no path.
pub(crate) type Path = Box<[usize]>;

impl<L: Library> Node<L> {
    pub(crate) fn leaf(number: u64) -> Arc<Self> {
        Self::over(number, Vec::new())
    }

    pub(crate) fn over(number: u64, children: Vec<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            attributes: L::one("k", number.to_le_bytes()),
            children: children.into_iter().collect(),
        })
    }

    pub(crate) fn build(shape: Shape) -> Arc<Self> {
        Self::build_below(shape, &mut 0)
    }

    fn build_below(shape: &[usize], number: &mut u64) -> Arc<Self> {
        let own = *number;
        let children = match shape.split_first() {
            None => Vec::new(),
            Some((count, below)) => {
                let mut children = Vec::with_capacity(*count);
                for _ in 0..*count {
                    *number += 1;
                    children.push(Self::build_below(below, number));
                }
                children
            }
        };
        Self::over(own, children)
    }

    pub(crate) fn count(&self) -> usize {
        let below = L::iter(&self.children).map(|child| child.count());
        1 + below.sum::<usize>()
    }

    /// Counts the nodes that have their attribute, which is read by its name.
    pub(crate) fn count_attributes(&self) -> usize {
        let value = L::get_attribute(&self.attributes, "k");
        // The highest byte of the number.
        let own = usize::from(value.is_some_and(|value| value[7] == 0));
        let below = L::iter(&self.children).map(|child| child.count_attributes());
        own + below.sum::<usize>()
    }

    /// Appends a child, in place as far as nothing else shares the nodes on the path.
    pub(crate) fn append(this: &mut Arc<Self>, path: &[usize], child: Arc<Self>) {
        if let Some(own) = Arc::get_mut(this) {
            match path.split_first() {
                None => L::push(&mut own.children, child),
                Some((at, path)) => Self::append(L::get_mut(&mut own.children, *at), path, child),
            }
            return;
        }
        let children = match path.split_first() {
            None => L::pushed(&this.children, child),
            Some((at, path)) => {
                let mut copy = Arc::clone(L::get(&this.children, *at));
                Self::append(&mut copy, path, child);
                L::with(&this.children, *at, copy)
            }
        };
        let attributes = this.attributes.clone();
        *this = Arc::new(Self {
            attributes,
            children,
        });
    }

    /// The tree with another value of one attribute.
    pub(crate) fn put(&self, path: &[usize], name: &'static str, value: Value) -> Arc<Self> {
        Arc::new(match path.split_first() {
            None => Self {
                attributes: L::put(&self.attributes, name, value),
                children: self.children.clone(),
            },
            Some((at, path)) => {
                let child = L::get(&self.children, *at).put(path, name, value);
                Self {
                    attributes: self.attributes.clone(),
                    children: L::with(&self.children, *at, child),
                }
            }
        })
    }
}

/// The paths of all nodes of a shape.
pub(crate) fn paths(shape: Shape) -> Vec<Path> {
    let mut all: Vec<Path> = vec![Path::default()];
    let mut from = 0;
    for count in shape {
        let level = from..all.len();
        from = all.len();
        for parent in level {
            for at in 0..*count {
                let path = [&all[parent][..], &[at]].concat();
                all.push(path.into());
            }
        }
    }
    all
}

/// Appends all nodes but the root, level by level; `append` gets the parent's path.
pub(crate) fn for_each_node(shape: Shape, mut append: impl FnMut(&[usize], u64)) {
    let mut number = 0;
    let parents = paths(&shape[..shape.len() - 1]);
    for parent in parents {
        for _ in 0..shape[parent.len()] {
            number += 1;
            append(&parent, number);
        }
    }
}
