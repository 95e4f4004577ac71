//! The naive tree that the real one is compared with: recursive, and copied whole for each version.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use weald_tree::{Attributes, Edit, EditError, Node, NodeId, Tree, Where};

/// A node with everything below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) id: NodeId,
    pub(crate) attributes: BTreeMap<String, Vec<u8>>,
    pub(crate) children: Vec<Model>,
}

/// One random operation; the indices choose among the present nodes.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Add(At, Index, Given),
    Splice(At, Index, Vec<bool>),
    Move(Index, At, Index),
    Delete(Index),
    Put(Index, String, Vec<u8>),
    Unput(Index, String),
    ReplaceRoot(Given),
    PushRoot(Given),
    PopRoot,
}

pub(crate) type Given = Option<(String, Vec<u8>)>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    First,
    Last,
    Before,
    After,
}

pub(crate) fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..count)
}

fn step() -> impl Strategy<Value = Step> {
    let node = any::<Index>;
    prop_oneof![
        12 => (at(), node(), given()).prop_map(|(at, node, given)| Step::Add(at, node, given)),
        2 => (at(), node(), prop::collection::vec(any::<bool>(), 0..40))
            .prop_map(|(at, node, shape)| Step::Splice(at, node, shape)),
        4 => (node(), at(), node()).prop_map(|(node, at, other)| Step::Move(node, at, other)),
        2 => node().prop_map(Step::Delete),
        4 => (node(), name(), value()).prop_map(|(node, name, value)| Step::Put(node, name, value)),
        2 => (node(), name()).prop_map(|(node, name)| Step::Unput(node, name)),
        1 => given().prop_map(Step::PushRoot),
        1 => Just(Step::PopRoot),
        1 => prop::option::weighted(0.1, given()).prop_map(|given| match given {
            Some(given) => Step::ReplaceRoot(given),
            None => Step::PushRoot(None),
        }),
    ]
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![
        Just(At::First),
        Just(At::Last),
        Just(At::Before),
        Just(At::After)
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[abc]{1,2}"
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..30)
}

fn given() -> impl Strategy<Value = Given> {
    prop::option::of((name(), value()))
}

pub(crate) fn attributes(given: &Given) -> Attributes {
    given.iter().fold(Attributes::new(), |all, (name, value)| {
        all.with(name, value)
    })
}

impl Model {
    pub(crate) fn new(id: NodeId, given: &Given) -> Self {
        Self {
            id,
            attributes: given.iter().cloned().collect(),
            children: Vec::new(),
        }
    }

    /// The model of what the real tree holds.
    pub(crate) fn of(node: Node<'_>) -> Self {
        let pairs = node.attributes().iter();
        Self {
            id: node.id(),
            attributes: pairs
                .map(|(name, value)| (name.to_owned(), value.to_vec()))
                .collect(),
            children: node.children().map(Model::of).collect(),
        }
    }

    pub(crate) fn ids(&self) -> Vec<NodeId> {
        let below = self.children.iter().flat_map(Model::ids);
        std::iter::once(self.id).chain(below).collect()
    }

    pub(crate) fn find(&mut self, id: NodeId) -> Option<&mut Model> {
        if self.id == id {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.find(id))
    }

    fn parent_of(&mut self, id: NodeId) -> Option<&mut Model> {
        if self.children.iter().any(|child| child.id == id) {
            return Some(self);
        }
        self.children
            .iter_mut()
            .find_map(|child| child.parent_of(id))
    }

    fn insert(&mut self, at: Where, new: Model) {
        let (parent, position) = match at {
            Where::First(parent) => (self.find(parent).expect("the model has it"), 0),
            Where::Last(parent) | Where::AtKey(parent) => {
                let parent = self.find(parent).expect("the model has it");
                let end = parent.children.len();
                (parent, end)
            }
            Where::Before(sibling) | Where::After(sibling) => {
                let parent = self.parent_of(sibling).expect("the model has it");
                let position = parent.children.iter().position(|child| child.id == sibling);
                let after = usize::from(matches!(at, Where::After(_)));
                (parent, position.expect("the model has it") + after)
            }
        };
        parent.children.insert(position, new);
    }

    fn take(&mut self, id: NodeId) -> Model {
        let parent = self.parent_of(id).expect("the model has it");
        let position = parent
            .children
            .iter()
            .position(|child| child.id == id)
            .expect("the model has it");
        parent.children.remove(position)
    }
}

/// Performs one step on both; the edit must refuse what is impossible in the model.
pub(crate) fn perform(edit: &mut Edit, model: &mut Model, step: &Step) {
    let ids = model.ids();
    let root = model.id;
    let place = |at: At, node: &Index| {
        let node = ids[node.index(ids.len())];
        match at {
            At::First => Where::First(node),
            At::Last => Where::Last(node),
            At::Before => Where::Before(node),
            At::After => Where::After(node),
        }
    };
    let is_beside_root = |at| [Where::Before(root), Where::After(root)].contains(&at);
    match step {
        Step::Add(at, node, given) => {
            let at = place(*at, node);
            match edit.add(at, attributes(given)) {
                Ok(id) => model.insert(at, Model::new(id, given)),
                Err(error) => assert!(is_beside_root(at) && error == EditError::IsRoot(root)),
            }
        }
        Step::Splice(at, node, shape) => splice(edit, model, (place(*at, node), shape)),
        Step::Move(node, at, other) => {
            let node = ids[node.index(ids.len())];
            let at = place(*at, other);
            match edit.move_to(node, at) {
                Ok(()) if matches!(at, Where::Before(n) | Where::After(n) if n == node) => {}
                Ok(()) => {
                    let moved = model.take(node);
                    model.insert(at, moved);
                }
                Err(EditError::IsRoot(id)) => {
                    assert!(id == root && (node == root || is_beside_root(at)));
                }
                Err(EditError::Cycle {
                    node: moved,
                    parent,
                }) => {
                    assert_eq!(moved, node);
                    assert!(
                        model
                            .find(node)
                            .expect("the model has it")
                            .ids()
                            .contains(&parent)
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
        Step::Delete(node) => {
            let node = ids[node.index(ids.len())];
            match edit.delete(node) {
                Ok(()) => _ = model.take(node),
                Err(error) => assert!(node == root && error == EditError::IsRoot(root)),
            }
        }
        _ => perform_on_one(edit, model, step),
    }
}

/// The steps that leave siblings alone.
fn perform_on_one(edit: &mut Edit, model: &mut Model, step: &Step) {
    let ids = model.ids();
    match step {
        Step::Put(node, name, value) => {
            let node = ids[node.index(ids.len())];
            edit.put_attribute(node, name, value)
                .expect("the model has it");
            let attributes = &mut model.find(node).expect("the model has it").attributes;
            attributes.insert(name.clone(), value.clone());
        }
        Step::Unput(node, name) => {
            let node = ids[node.index(ids.len())];
            let was_there = model
                .find(node)
                .expect("the model has it")
                .attributes
                .remove(name)
                .is_some();
            assert_eq!(edit.delete_attribute(node, name).is_ok(), was_there);
        }
        Step::ReplaceRoot(given) => {
            *model = Model::new(edit.replace_root(attributes(given)), given);
        }
        Step::PushRoot(given) => {
            let mut above = Model::new(edit.push_root(attributes(given)), given);
            std::mem::swap(&mut above, model);
            model.children.push(above);
        }
        Step::PopRoot => match (edit.pop_root(), model.children.pop()) {
            (Ok(()), Some(only)) if model.children.is_empty() => *model = only,
            (popped, last) => {
                model.children.extend(last);
                assert_eq!(popped, Err(EditError::NotAlone(edit.tree().root().id())));
                assert_ne!(model.children.len(), 1);
            }
        },
        _ => unreachable!("the caller performs the other steps"),
    }
}

/// `true` opens a node, `false` closes one and adds a leaf.
fn splice(edit: &mut Edit, model: &mut Model, (at, shape): (Where, &[bool])) {
    let mut builder = edit.tree().builder(Attributes::new());
    let mut depth = 0;
    for is_open in shape {
        let name = Attributes::new().with("b", "built");
        if *is_open {
            builder.open(name);
            depth += 1;
        } else {
            builder.leaf(name);
            if depth > 0 {
                builder.close();
                depth -= 1;
            }
        }
    }
    let subtree = builder.finish();
    match edit.splice(at, &subtree) {
        Ok(()) => {
            assert_eq!(subtree.len(), 1 + shape.len() as u64);
            let built = Model::of(edit.tree().node(subtree.root()).expect("the model has it"));
            assert_eq!(built.ids().len(), 1 + shape.len());
            assert!(matches!(
                edit.splice(at, &subtree),
                Err(EditError::AlreadyThere(_))
            ));
            model.insert(at, built);
        }
        Err(error) => assert_eq!(error, EditError::IsRoot(model.id)),
    }
}

/// A tree and its model after these steps.
pub(crate) fn grown(steps: &[Step]) -> (Tree, Model) {
    let tree = Tree::new();
    let mut model = Model::of(tree.root());
    let mut edit = tree.edit();
    for step in steps {
        perform(&mut edit, &mut model, step);
    }
    (edit.freeze(), model)
}
