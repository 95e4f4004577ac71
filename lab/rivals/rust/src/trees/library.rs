//! What a node consists of in each library: attributes sorted by name, and an ordered list of children.

use std::sync::Arc;

use super::document::Node;

/// The value of an attribute.
pub(crate) type Value = [u8; 8];
type Child<L> = Arc<Node<L>>;

/// Persistent attributes and children.
pub(crate) trait Library: Sized + Send + Sync + 'static {
    type Attributes: Clone + Send + Sync;
    type Children: Clone + Send + Sync + FromIterator<Child<Self>>;

    fn one(name: &'static str, value: Value) -> Self::Attributes;
    fn put(attributes: &Self::Attributes, name: &'static str, value: Value) -> Self::Attributes;
    fn get_attribute<'a>(attributes: &'a Self::Attributes, name: &str) -> Option<&'a Value>;
    fn iter(children: &Self::Children) -> impl Iterator<Item = &Child<Self>>;
    fn get(children: &Self::Children, at: usize) -> &Child<Self>;
    /// The same list with another child at a position.
    fn with(children: &Self::Children, at: usize, child: Child<Self>) -> Self::Children;
    /// The same list with one more child at its end.
    fn pushed(children: &Self::Children, child: Child<Self>) -> Self::Children;
    /// A mutable child of an unshared list.
    fn get_mut(children: &mut Self::Children, at: usize) -> &mut Child<Self>;
    fn push(children: &mut Self::Children, child: Child<Self>);
}

/// Boxed slices, copied whole.
pub(crate) struct ByHand;

impl Library for ByHand {
    type Attributes = Box<[(&'static str, Value)]>;
    type Children = Box<[Child<Self>]>;

    fn one(name: &'static str, value: Value) -> Self::Attributes {
        Box::new([(name, value)])
    }

    fn put(attributes: &Self::Attributes, name: &'static str, value: Value) -> Self::Attributes {
        match attributes.binary_search_by_key(&name, |(known, _)| known) {
            Ok(at) => {
                let mut copy = attributes.clone();
                copy[at].1 = value;
                copy
            }
            Err(at) => {
                let (before, behind) = attributes.split_at(at);
                [before, &[(name, value)], behind].concat().into()
            }
        }
    }

    fn get_attribute<'a>(attributes: &'a Self::Attributes, name: &str) -> Option<&'a Value> {
        let at = attributes.binary_search_by_key(&name, |(known, _)| known);
        at.ok().map(|at| &attributes[at].1)
    }

    fn iter(children: &Self::Children) -> impl Iterator<Item = &Child<Self>> {
        children.iter()
    }

    fn get(children: &Self::Children, at: usize) -> &Child<Self> {
        &children[at]
    }

    fn with(children: &Self::Children, at: usize, child: Child<Self>) -> Self::Children {
        let mut copy = children.clone();
        copy[at] = child;
        copy
    }

    fn pushed(children: &Self::Children, child: Child<Self>) -> Self::Children {
        let mut copy = Vec::with_capacity(children.len() + 1);
        copy.extend_from_slice(children);
        copy.push(child);
        copy.into()
    }

    fn get_mut(children: &mut Self::Children, at: usize) -> &mut Child<Self> {
        &mut children[at]
    }

    fn push(children: &mut Self::Children, child: Child<Self>) {
        let mut list = std::mem::take(children).into_vec();
        list.reserve_exact(1);
        list.push(child);
        *children = list.into();
    }
}

/// `OrdMap` and `Vector` of imbl.
pub(crate) struct Imbl;

impl Library for Imbl {
    type Attributes = imbl::OrdMap<&'static str, Value>;
    type Children = imbl::Vector<Child<Self>>;

    fn one(name: &'static str, value: Value) -> Self::Attributes {
        imbl::OrdMap::unit(name, value)
    }

    fn put(attributes: &Self::Attributes, name: &'static str, value: Value) -> Self::Attributes {
        attributes.update(name, value)
    }

    fn get_attribute<'a>(attributes: &'a Self::Attributes, name: &str) -> Option<&'a Value> {
        attributes.get(name)
    }

    fn iter(children: &Self::Children) -> impl Iterator<Item = &Child<Self>> {
        children.iter()
    }

    fn get(children: &Self::Children, at: usize) -> &Child<Self> {
        &children[at]
    }

    fn with(children: &Self::Children, at: usize, child: Child<Self>) -> Self::Children {
        children.update(at, child)
    }

    fn pushed(children: &Self::Children, child: Child<Self>) -> Self::Children {
        let mut copy = children.clone();
        copy.push_back(child);
        copy
    }

    fn get_mut(children: &mut Self::Children, at: usize) -> &mut Child<Self> {
        &mut children[at]
    }

    fn push(children: &mut Self::Children, child: Child<Self>) {
        children.push_back(child);
    }
}

/// `RedBlackTreeMapSync` and `VectorSync` of rpds.
pub(crate) struct Rpds;

impl Library for Rpds {
    type Attributes = rpds::RedBlackTreeMapSync<&'static str, Value>;
    type Children = rpds::VectorSync<Child<Self>>;

    fn one(name: &'static str, value: Value) -> Self::Attributes {
        rpds::RedBlackTreeMapSync::new_sync().insert(name, value)
    }

    fn put(attributes: &Self::Attributes, name: &'static str, value: Value) -> Self::Attributes {
        attributes.insert(name, value)
    }

    fn get_attribute<'a>(attributes: &'a Self::Attributes, name: &str) -> Option<&'a Value> {
        attributes.get(name)
    }

    fn iter(children: &Self::Children) -> impl Iterator<Item = &Child<Self>> {
        children.iter()
    }

    fn get(children: &Self::Children, at: usize) -> &Child<Self> {
        &children[at]
    }

    fn with(children: &Self::Children, at: usize, child: Child<Self>) -> Self::Children {
        children.set(at, child).expect("the path leads to a node")
    }

    fn pushed(children: &Self::Children, child: Child<Self>) -> Self::Children {
        children.push_back(child)
    }

    fn get_mut(children: &mut Self::Children, at: usize) -> &mut Child<Self> {
        children.get_mut(at).expect("the path leads to a node")
    }

    fn push(children: &mut Self::Children, child: Child<Self>) {
        children.push_back_mut(child);
    }
}
