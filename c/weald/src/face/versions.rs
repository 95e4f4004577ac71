//! Versions of a tree that stay: history, tags, the way back.

#![allow(unsafe_code)]

use std::{ffi::c_char, mem::MaybeUninit, sync::Mutex};

use weald::forest::Snapshot;

use super::{
    edits::{EditHandle, EditObject},
    forest::{TreeHandle, TreeObject, no_version, refused},
    views::{NodeNumber, TreeVersion, ViewHandle, ViewObject, id},
};
use crate::{
    arguments::{fill, room, text},
    codes::{Code, WEALD_MISSING, WEALD_NULL, failure},
    guard::{give, guard, needed},
    handles,
    message::{Bytes, Message},
    waits::wait,
};

fn version_of(snapshot: &Snapshot) -> TreeVersion {
    TreeVersion::of(snapshot.version())
}

/// The versions of a tree that memory keeps without a gap, the oldest first. `count` gets how many there are, and
/// `versions` the first `capacity` of them, or fewer; it may be null if `capacity` is zero.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_versions(
    tree: TreeHandle,
    versions: *mut TreeVersion,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let count = needed(count)?;
        let room = room(versions, capacity)?;
        let kept = handles::get::<TreeObject>(tree)?.0.versions();
        count.write(fill(room, kept.iter().map(version_of)));
        Ok(())
    })
}

/// The versions among them in which a node was added, changed, moved or deleted, the newest first. Results are as in
/// weald_tree_versions.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_history(
    tree: TreeHandle,
    node: NodeNumber,
    versions: *mut TreeVersion,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let node = id(node)?;
        let count = needed(count)?;
        let room = room(versions, capacity)?;
        let changed = handles::get::<TreeObject>(tree)?.0.history(node);
        count.write(fill(room, changed.iter().map(version_of)));
        Ok(())
    })
}

/// Makes a version with the nodes of an older one, which keep their numbers. The versions between stay. `made`, which
/// may be null, gets the new version. WEALD_MISSING if the older one does not exist, or memory no longer keeps it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_restore(
    tree: TreeHandle,
    version: Option<&TreeVersion>,
    made: Option<&mut MaybeUninit<TreeVersion>>,
) -> Code {
    guard(|| {
        let version = version.ok_or_else(|| failure(WEALD_NULL, "the version is null"))?;
        let tree = handles::get::<TreeObject>(tree)?;
        let restored = wait(tree.0.restore(version.get())).map_err(refused)?;
        give(made, TreeVersion::of(restored.version));
        Ok(())
    })
}

/// Begins an edit that takes back what one commit did to a tree: the one that made `version`, or the tree's newest
/// version up to it. What others did since stays; where they have changed the same, the commit of the edit is a
/// WEALD_CONFLICT. The edit of an undo's version is a redo. WEALD_MISSING if memory keeps the version, or the one
/// before it, no longer.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_revert(
    tree: TreeHandle,
    version: Option<&TreeVersion>,
    edit: Option<&mut MaybeUninit<EditHandle>>,
) -> Code {
    guard(|| {
        let version = version.ok_or_else(|| failure(WEALD_NULL, "the version is null"))?;
        let edit = needed(edit)?;
        let tree = handles::get::<TreeObject>(tree)?;
        let reverted = tree.0.revert(version.get());
        let reverted = reverted.map_err(|error| no_version(&error))?;
        edit.write(handles::add(EditObject(Mutex::new(reverted)))?);
        Ok(())
    })
}

/// Gives a version of a tree a tag, or the newest version if `version` is null. The version is kept until the tag is
/// removed. A tag that exists moves.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_tag(
    tree: TreeHandle,
    tag: *const c_char,
    version: Option<&TreeVersion>,
) -> Code {
    guard(|| {
        let tag = text(tag)?;
        let tree = handles::get::<TreeObject>(tree)?;
        let version = match version {
            None => tree.0.view().version(),
            Some(version) => version.get(),
        };
        wait(tree.0.tag(tag, version)).map_err(refused)?;
        Ok(())
    })
}

/// Removes a tag, if it exists.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_untag(tree: TreeHandle, tag: *const c_char) -> Code {
    guard(|| {
        let tag = text(tag)?;
        let tree = handles::get::<TreeObject>(tree)?;
        wait(tree.0.untag(tag)).map_err(refused)?;
        Ok(())
    })
}

/// A view of the version that has a tag. WEALD_MISSING if none has it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_tagged(
    tree: TreeHandle,
    tag: *const c_char,
    view: Option<&mut MaybeUninit<ViewHandle>>,
) -> Code {
    guard(|| {
        let tag = text(tag)?;
        let view = needed(view)?;
        let found = handles::get::<TreeObject>(tree)?.0.tagged(tag);
        let missing = || failure(WEALD_MISSING, format!("no version has the tag `{tag}`"));
        view.write(handles::add(ViewObject(found.ok_or_else(missing)?))?);
        Ok(())
    })
}

/// The tags of a tree, sorted, each with a newline behind it, which no tag contains.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_tags(tree: TreeHandle, tags: Option<&mut MaybeUninit<Bytes>>) -> Code {
    guard(|| {
        let tags = needed(tags)?;
        let all = handles::get::<TreeObject>(tree)?.0.tags();
        let text: String = all.iter().flat_map(|(tag, _)| [tag, "\n"]).collect();
        Message::of(text.as_bytes())?.give(tags);
        Ok(())
    })
}
