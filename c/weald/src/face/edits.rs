//! Edits: private versions of a tree, which are changed and then committed.

#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    sync::{Mutex, PoisonError, TryLockError},
};

use weald::forest::{Attributes, Edit, Where};

use super::{
    forest::{TreeHandle, TreeObject, impossible, level_of, refused},
    views::{NodeNumber, TreeVersion, ViewHandle, ViewObject, id, no_attribute},
};
use crate::{
    arguments::{fill, room, text},
    codes::{Code, Failure, WEALD_ARGUMENT, WEALD_BUSY, WEALD_MISSING, failure},
    guard::{give, guard, needed},
    handles::{self, Object},
    message::{Bytes, Message, bytes_of_c},
    waits::wait_whole,
};

/// An edit of a tree: a private version. One call at a time. What it reads and changes decides with which other commits
/// it conflicts.
pub type EditHandle = u64;

/// A place for a node: before all children of a node.
pub const WEALD_FIRST_IN: i32 = 0;
/// A place: after all children of a node.
pub const WEALD_LAST_IN: i32 = 1;
/// A place: before a node, with the same parent.
pub const WEALD_BEFORE: i32 = 2;
/// A place: after a node, with the same parent.
pub const WEALD_AFTER: i32 = 3;

pub(super) struct EditObject(pub(super) Mutex<Edit>);

impl Object for EditObject {
    fn name() -> &'static str {
        "edit"
    }
}

/// Runs code with an edit.
pub(super) fn with<R>(
    edit: EditHandle,
    act: impl FnOnce(&mut Edit) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let edit = handles::get::<EditObject>(edit)?;
    let mut edit = match edit.0.try_lock() {
        Ok(edit) => edit,
        Err(TryLockError::Poisoned(edit)) => edit.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err(failure(WEALD_BUSY, "another call uses the edit"));
        }
    };
    act(&mut edit)
}

fn place(place: i32, node: NodeNumber) -> Result<Where, Failure> {
    let node = id(node)?;
    match place {
        WEALD_FIRST_IN => Ok(Where::First(node)),
        WEALD_LAST_IN => Ok(Where::Last(node)),
        WEALD_BEFORE => Ok(Where::Before(node)),
        WEALD_AFTER => Ok(Where::After(node)),
        _ => Err(failure(
            WEALD_ARGUMENT,
            format!("there is no place {place}"),
        )),
    }
}

/// Begins an edit of a tree, from the version of a view of that tree, or from the newest one if `view` is zero.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_begin(
    tree: TreeHandle,
    view: ViewHandle,
    edit: Option<&mut MaybeUninit<EditHandle>>,
) -> Code {
    guard(|| {
        let edit = needed(edit)?;
        let tree = handles::get::<TreeObject>(tree)?;
        let begun = match view {
            0 => tree.0.edit(),
            view => {
                let view = handles::get::<ViewObject>(view)?;
                let newest = tree.0.view();
                if !newest.tree().shares_ids_with(view.0.tree()) {
                    return Err(failure(WEALD_ARGUMENT, "the view is one of another tree"));
                }
                tree.0.edit_from(&view.0)
            }
        };
        edit.write(handles::add(EditObject(Mutex::new(begun)))?);
        Ok(())
    })
}

/// The topmost node.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_root(
    edit: EditHandle,
    node: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let node = needed(node)?;
        node.write(with(edit, |edit| Ok(edit.root().get()))?);
        Ok(())
    })
}

/// The node above a node in the edit; zero above the root. The read does not count: no commit conflicts with it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_parent(
    edit: EditHandle,
    node: NodeNumber,
    parent: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let number = id(node)?;
        let parent = needed(parent)?;
        let above = with(edit, |edit| {
            let missing = || failure(WEALD_MISSING, format!("the edit has no node {node}"));
            let node = edit.tree().node(number).ok_or_else(missing)?;
            Ok(node.parent().map_or(0, |parent| parent.id().get()))
        })?;
        parent.write(above);
        Ok(())
    })
}

/// The children of a node in the edit, in order. `count` gets how many it has, and `children` the first `capacity` of
/// them, or fewer; it may be null if `capacity` is zero. The read counts: a commit that changes the list of the
/// children meanwhile conflicts.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_children(
    edit: EditHandle,
    node: NodeNumber,
    children: *mut NodeNumber,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let node = id(node)?;
        let count = needed(count)?;
        let room = room(children, capacity)?;
        let number = with(edit, |edit| {
            let children = edit.children(node).map_err(impossible)?;
            Ok(fill(room, children.map(|child| child.get())))
        })?;
        count.write(number);
        Ok(())
    })
}

/// Adds a node without attributes at a place: WEALD_FIRST_IN, WEALD_LAST_IN, WEALD_BEFORE or WEALD_AFTER `at`.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_add(
    edit: EditHandle,
    place: i32,
    at: NodeNumber,
    node: Option<&mut MaybeUninit<NodeNumber>>,
) -> Code {
    guard(|| {
        let node = needed(node)?;
        let at = self::place(place, at)?;
        let added = with(edit, |edit| {
            edit.add(at, Attributes::new()).map_err(impossible)
        })?;
        node.write(added.get());
        Ok(())
    })
}

/// Moves a node, with all that is below it, to a place as in weald_edit_add.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_move(
    edit: EditHandle,
    node: NodeNumber,
    place: i32,
    at: NodeNumber,
) -> Code {
    guard(|| {
        let (node, at) = (id(node)?, self::place(place, at)?);
        with(edit, |edit| edit.move_to(node, at).map_err(impossible))
    })
}

/// Deletes a node, with all that is below it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_delete(edit: EditHandle, node: NodeNumber) -> Code {
    guard(|| {
        let node = id(node)?;
        with(edit, |edit| edit.delete(node).map_err(impossible))
    })
}

/// Puts an attribute of a node to a copy of `length` bytes at `data`.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_put(
    edit: EditHandle,
    node: NodeNumber,
    name: *const c_char,
    data: *const c_void,
    length: usize,
) -> Code {
    guard(|| {
        let (node, name) = (id(node)?, text(name)?);
        let value = bytes_of_c(data, length)?;
        with(edit, |edit| {
            edit.put_attribute(node, name, value).map_err(impossible)
        })
    })
}

/// Deletes an attribute of a node.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_remove(
    edit: EditHandle,
    node: NodeNumber,
    name: *const c_char,
) -> Code {
    guard(|| {
        let (node, name) = (id(node)?, text(name)?);
        with(edit, |edit| {
            edit.delete_attribute(node, name).map_err(impossible)
        })
    })
}

/// The bytes of an attribute in the edit. The read counts: a commit that changes the attribute meanwhile conflicts.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_get(
    edit: EditHandle,
    node: NodeNumber,
    name: *const c_char,
    value: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let (node, name) = (id(node)?, text(name)?);
        let value = needed(value)?;
        let found = with(edit, |edit| {
            let found = edit.attribute(node, name).map_err(impossible)?;
            Message::of(found.ok_or_else(|| no_attribute(name))?)
        })?;
        found.give(value);
        Ok(())
    })
}

/// Commits an edit, and releases its handle, also if the commit fails. `level` is one of WEALD_LEVEL_DEFAULT,
/// WEALD_LEVEL_ACCEPTED, WEALD_LEVEL_BUFFERED, WEALD_LEVEL_DURABLE. `version`, which may be null, gets the version that
/// it made. WEALD_CONFLICT if another commit came first that it does not go with.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_commit(
    edit: EditHandle,
    level: i32,
    version: Option<&mut MaybeUninit<TreeVersion>>,
) -> Code {
    guard(|| {
        let level = level_of(level)?;
        let committed = wait_whole(|| {
            let edit: EditObject = handles::take_alone(edit)?;
            let edit = edit.0.into_inner();
            let commit = edit.unwrap_or_else(PoisonError::into_inner).commit();
            Ok(match level {
                None => commit,
                Some(level) => commit.level(level),
            })
        })?;
        let committed = committed.map_err(refused)?;
        give(version, TreeVersion::of(committed.version));
        Ok(())
    })
}
