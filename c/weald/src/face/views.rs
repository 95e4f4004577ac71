//! Views: versions of a tree that are read, node by node.

#![allow(unsafe_code)]

use std::{ffi::c_char, mem::MaybeUninit, time::UNIX_EPOCH};

use weald::forest::{Node, NodeId, Snapshot, Version};

use crate::{
    arguments::{room, text},
    codes::{Code, Failure, WEALD_MISSING, failure},
    guard::{guard, needed},
    handles::{self, Object},
    message::{Bytes, Message},
};

/// A version of a tree, which never changes. Any thread and any unit may read it, also at once. It is kept until it is
/// released.
pub type ViewHandle = u64;

/// A node: its number in its tree, which it keeps in every version. Zero is no node.
pub type NodeNumber = u64;

/// A version of a forest. Those of one opening are ordered by their numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TreeVersion {
    /// The opening of the forest in which it was made.
    pub incarnation: u64,
    /// The number of the commit that made it.
    pub number: u64,
}

impl TreeVersion {
    pub(super) fn of(version: Version) -> TreeVersion {
        TreeVersion {
            incarnation: version.incarnation,
            number: version.number,
        }
    }

    pub(super) fn get(self) -> Version {
        Version {
            incarnation: self.incarnation,
            number: self.number,
        }
    }
}

pub(super) struct ViewObject(pub(super) Snapshot);

impl Object for ViewObject {
    fn name() -> &'static str {
        "view"
    }
}

/// The node of a number.
pub(super) fn id(node: NodeNumber) -> Result<NodeId, Failure> {
    NodeId::new(node)
        .ok_or_else(|| failure(WEALD_MISSING, format!("no node has the number {node}")))
}

/// Runs code with a node of a view.
fn with<R>(
    view: ViewHandle,
    node: NodeNumber,
    act: impl FnOnce(Node<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let view = handles::get::<ViewObject>(view)?;
    let found = view.0.tree().node(id(node)?);
    act(found.ok_or_else(|| failure(WEALD_MISSING, format!("this version has no node {node}")))?)
}

/// The version of a view.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_version(
    view: ViewHandle,
    version: Option<&mut MaybeUninit<TreeVersion>>,
) -> Code {
    guard(|| {
        let version = needed(version)?;
        let view = handles::get::<ViewObject>(view)?;
        version.write(TreeVersion::of(view.0.version()));
        Ok(())
    })
}

/// When the version of a view was committed: nanoseconds since the beginning of 1970.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_time(
    view: ViewHandle,
    time_ns: Option<&mut MaybeUninit<i64>>,
) -> Code {
    guard(|| {
        let time_ns = needed(time_ns)?;
        let time = handles::get::<ViewObject>(view)?.0.time();
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        time_ns.write(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        Ok(())
    })
}

/// How many nodes a view has.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_length(
    view: ViewHandle,
    length: Option<&mut MaybeUninit<u64>>,
) -> Code {
    guard(|| {
        let length = needed(length)?;
        length.write(handles::get::<ViewObject>(view)?.0.tree().len());
        Ok(())
    })
}

/// The topmost node.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_root(
    view: ViewHandle,
    node: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let node = needed(node)?;
        let root = handles::get::<ViewObject>(view)?.0.tree().root().id();
        node.write(root.get());
        Ok(())
    })
}

/// The node above a node; zero above the root.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_parent(
    view: ViewHandle,
    node: NodeNumber,
    parent: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let parent = needed(parent)?;
        let above = with(view, node, |node| {
            Ok(node.parent().map(|parent| parent.id().get()))
        })?;
        parent.write(above.unwrap_or(0));
        Ok(())
    })
}

/// The children of a node, in order. `count` gets how many it has, and `children` the first `capacity` of them, or
/// fewer; it may be null if `capacity` is zero.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_children(
    view: ViewHandle,
    node: NodeNumber,
    children: *mut NodeNumber,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let count = needed(count)?;
        let room = room(children, capacity)?;
        let number = with(view, node, |node| {
            for (place, child) in room.iter_mut().zip(node.children()) {
                place.write(child.id().get());
            }
            Ok(node.child_count())
        })?;
        count.write(number);
        Ok(())
    })
}

/// The child of a node at a position. WEALD_MISSING behind the last one.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_child(
    view: ViewHandle,
    node: NodeNumber,
    position: usize,
    child: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let child = needed(child)?;
        let found = with(view, node, |node| {
            let found = node.child(position).map(|child| child.id().get());
            found.ok_or_else(|| failure(WEALD_MISSING, format!("there is no child {position}")))
        })?;
        child.write(found);
        Ok(())
    })
}

/// The bytes of an attribute of a node. WEALD_MISSING if it has none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_get(
    view: ViewHandle,
    node: NodeNumber,
    name: *const c_char,
    value: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let name = text(name)?;
        let value = needed(value)?;
        let found = with(view, node, |node| {
            Message::of(node.get(name).ok_or_else(|| no_attribute(name))?)
        })?;
        found.give(value);
        Ok(())
    })
}

/// The names of the attributes of a node, sorted, each with a zero byte behind it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_attributes(
    view: ViewHandle,
    node: NodeNumber,
    names: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let names = needed(names)?;
        let found = with(view, node, |node| {
            let mut all: Vec<&str> = node.attributes().iter().map(|(name, _)| name).collect();
            all.sort_unstable();
            let text: String = all.into_iter().flat_map(|name| [name, "\0"]).collect();
            Message::of(text.as_bytes())
        })?;
        found.give(names);
        Ok(())
    })
}

pub(super) fn no_attribute(name: &str) -> Failure {
    failure(WEALD_MISSING, format!("the node has no attribute `{name}`"))
}
