//! Operations as data, as a journal or another machine would send them: ids, order keys and names are
//! arbitrary. Each operation either applies and leaves a sound tree, or is refused and changes nothing, and
//! the list of those that applied makes the same version again.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use weald_tree::{Attributes, Bytes, NodeId, Operation, OrderKey, Target, Tree, Where};

#[derive(Arbitrary, Debug)]
enum Step {
    Add(Id, To, Value),
    Splice(u8, To),
    Move(Id, To),
    Delete(Id),
    PutAttribute(Id, Vec<u8>, Vec<u8>),
    DeleteAttribute(Id, Vec<u8>),
    ReplaceRoot(Id, Value),
    PushRoot(Id, Value),
}

/// Mostly small numbers, so that ids meet.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Id {
    Near(u8),
    Far(u64),
}

#[derive(Arbitrary, Debug)]
struct To {
    at: At,
    beside: Id,
    parent: Id,
    words: Vec<Word>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum At {
    First,
    Last,
    Before,
    After,
}

/// Keys meet at small words and at the ends of the range.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Word {
    Low(u8),
    High(u8),
    Any(u64),
}

type Value = Option<(String, Vec<u8>)>;

fuzz_target!(|steps: Vec<Step>| {
    let base = Tree::new();
    let mut edit = base.edit();
    for step in &steps {
        let Some(operation) = operation(step, edit.tree()) else {
            continue;
        };
        let before = edit.tree().clone();
        match edit.apply(&operation) {
            Ok(_) => assert_sound(edit.tree()),
            Err(_) => assert_eq!(before.diff(edit.tree()).count(), 0),
        }
    }
    let (tree, mut script) = edit.finish();
    let again = script.replay(&base).expect("each operation applied before");
    assert_eq!(tree.diff(&again).count(), 0);
    assert_eq!(tree.root().to_json(), again.root().to_json());
});

/// The operation that a step describes, unless its id is zero or its key has an even number of words.
fn operation(step: &Step, tree: &Tree) -> Option<Operation> {
    Some(match step {
        Step::Add(node, to, value) => Operation::Add {
            node: id(*node)?,
            target: target(to)?,
            attributes: attributes(value),
        },
        Step::Splice(children, to) => {
            let mut builder = tree.builder(Attributes::new());
            for _ in 0..*children {
                builder.leaf(Attributes::new());
            }
            Operation::Splice {
                subtree: builder.finish(),
                target: target(to)?,
            }
        }
        Step::Move(node, to) => Operation::Move {
            node: id(*node)?,
            target: target(to)?,
        },
        Step::Delete(node) => Operation::Delete { node: id(*node)? },
        Step::PutAttribute(node, name, value) => Operation::PutAttribute {
            node: id(*node)?,
            name: Bytes::new(name),
            value: Bytes::new(value),
        },
        Step::DeleteAttribute(node, name) => Operation::DeleteAttribute {
            node: id(*node)?,
            name: Bytes::new(name),
        },
        Step::ReplaceRoot(node, value) => Operation::ReplaceRoot {
            node: id(*node)?,
            attributes: attributes(value),
        },
        Step::PushRoot(node, value) => Operation::PushRoot {
            node: id(*node)?,
            attributes: attributes(value),
        },
    })
}

fn id(id: Id) -> Option<NodeId> {
    NodeId::new(match id {
        Id::Near(number) => u64::from(number),
        Id::Far(number) => number,
    })
}

fn target(to: &To) -> Option<Target> {
    let beside = id(to.beside)?;
    let words: Vec<u64> = to.words.iter().map(|word| number(*word)).collect();
    Some(Target {
        at: match to.at {
            At::First => Where::First(beside),
            At::Last => Where::Last(beside),
            At::Before => Where::Before(beside),
            At::After => Where::After(beside),
        },
        parent: match to.at {
            At::First | At::Last => beside,
            At::Before | At::After => id(to.parent)?,
        },
        key: OrderKey::from_words(&words)?,
    })
}

fn number(word: Word) -> u64 {
    match word {
        Word::Low(number) => u64::from(number),
        Word::High(number) => u64::MAX - u64::from(number),
        Word::Any(number) => number,
    }
}

fn attributes(value: &Value) -> Attributes {
    match value {
        Some((name, value)) => Attributes::new().with(name, value),
        None => Attributes::new(),
    }
}

/// Every node is reached once, and parents, children, positions and paths agree.
fn assert_sound(tree: &Tree) {
    let mut count = 0;
    for node in tree.root().preorder() {
        count += 1;
        assert_eq!(tree.node(node.id()), Some(node));
        for (position, child) in node.children().enumerate() {
            assert_eq!(child.parent(), Some(node));
            assert_eq!(child.position(), position);
        }
    }
    assert_eq!(count, tree.len());
    assert_eq!(tree.root().postorder().count() as u64, count);
    assert_eq!(tree.root().breadth_first().count() as u64, count);
}
