//! Nodes that are found by the values of their attributes, with an index or without.

#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    ops::Bound,
    ptr,
};

use weald::forest::Query;

use super::{
    edits::{self, EditHandle},
    forest::{TreeHandle, TreeObject, impossible, refused},
    views::{NodeNumber, ViewHandle, ViewObject, id},
};
use crate::{
    arguments::{Options, fill, options, room, text},
    codes::{Code, Failure, WEALD_ARGUMENT, WEALD_NULL, failure},
    guard::{guard, needed},
    handles,
    message::bytes_of_c,
    waits::wait,
};

/// The value of the attribute is `value`.
pub const WEALD_FIND_EQUAL: i32 = 0;
/// The value of the attribute begins with `value`.
pub const WEALD_FIND_PREFIX: i32 = 1;
/// The value of the attribute is at least `value` and less than `end`, in the order of bytes; if `end` is null, however
/// large.
pub const WEALD_FIND_RANGE: i32 = 2;

/// Which nodes to find. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FindQuery {
    /// The size of this struct.
    pub size: usize,
    /// One of WEALD_FIND_EQUAL, WEALD_FIND_PREFIX, WEALD_FIND_RANGE.
    pub kind: i32,
    /// 1: the greatest value first; 0: the least.
    pub reverse: i32,
    /// The name of the attribute.
    pub attribute: *const c_char,
    /// With what its value is compared.
    pub value: *const c_void,
    /// How many bytes.
    pub value_length: usize,
    /// The end of a range.
    pub end: *const c_void,
    /// How many bytes.
    pub end_length: usize,
    /// Only this node and those below it; 0: all nodes.
    pub under: NodeNumber,
    /// How many nodes to find at most; 0: all.
    pub limit: usize,
}

// SAFETY: the size comes first, and the others are numbers and pointers.
unsafe impl Options for FindQuery {
    const DEFAULT: FindQuery = FindQuery {
        size: size_of::<FindQuery>(),
        kind: WEALD_FIND_EQUAL,
        reverse: 0,
        attribute: ptr::null(),
        value: ptr::null(),
        value_length: 0,
        end: ptr::null(),
        end_length: 0,
        under: 0,
        limit: 0,
    };
}

fn query_of(query: *const FindQuery) -> Result<Query, Failure> {
    if query.is_null() {
        return Err(failure(WEALD_NULL, "the query is null"));
    }
    let asked = options(query)?;
    let attribute = text(asked.attribute)?;
    let value = bytes_of_c(asked.value, asked.value_length)?;
    let mut query = match asked.kind {
        WEALD_FIND_EQUAL => Query::equal(attribute, value),
        WEALD_FIND_PREFIX => Query::prefix(attribute, value),
        WEALD_FIND_RANGE if asked.end.is_null() => {
            Query::range::<&[u8]>(attribute, (Bound::Included(value), Bound::Unbounded))
        }
        WEALD_FIND_RANGE => {
            let end = bytes_of_c(asked.end, asked.end_length)?;
            Query::range::<&[u8]>(attribute, (Bound::Included(value), Bound::Excluded(end)))
        }
        kind => {
            let sentence = format!("there is no query of the kind {kind}");
            return Err(failure(WEALD_ARGUMENT, sentence));
        }
    };
    if asked.under != 0 {
        query = query.under(id(asked.under)?);
    }
    if asked.reverse != 0 {
        query = query.reverse();
    }
    if asked.limit > 0 {
        query = query.limit(asked.limit);
    }
    Ok(query)
}

/// Gives an attribute an index, in all versions of a tree from now on; does nothing if it has one. With it a look for
/// values of this attribute takes time for what it finds, and without it for all nodes.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_add_index(tree: TreeHandle, attribute: *const c_char) -> Code {
    guard(|| {
        let attribute = text(attribute)?;
        let tree = handles::get::<TreeObject>(tree)?;
        wait(tree.0.add_index(attribute)).map_err(refused)?;
        Ok(())
    })
}

/// Removes the index of an attribute, if it has one, from all versions from now on.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_drop_index(tree: TreeHandle, attribute: *const c_char) -> Code {
    guard(|| {
        let attribute = text(attribute)?;
        let tree = handles::get::<TreeObject>(tree)?;
        wait(tree.0.drop_index(attribute)).map_err(refused)?;
        Ok(())
    })
}

/// The nodes of a view that a query asks for, sorted by the value of the attribute, and then by their numbers. `count`
/// gets how many it finds, and `nodes` the first `capacity` of them, or fewer; it may be null if `capacity` is zero. It
/// finds none if the version does not have the node `under`.
#[unsafe(no_mangle)]
pub extern "C" fn weald_view_find(
    view: ViewHandle,
    query: *const FindQuery,
    nodes: *mut NodeNumber,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let query = query_of(query)?;
        let count = needed(count)?;
        let room = room(nodes, capacity)?;
        let view = handles::get::<ViewObject>(view)?;
        let found = view.0.find(&query);
        count.write(fill(room, found.map(|node| node.id().get())));
        Ok(())
    })
}

/// The same for an edit, with what it has changed. The read counts: a commit that changes a node in which the query has
/// looked meanwhile conflicts. WEALD_MISSING if the edit does not have the node `under`.
#[unsafe(no_mangle)]
pub extern "C" fn weald_edit_find(
    edit: EditHandle,
    query: *const FindQuery,
    nodes: *mut NodeNumber,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> Code {
    guard(|| {
        let query = query_of(query)?;
        let count = needed(count)?;
        let room = room(nodes, capacity)?;
        let found = edits::with(edit, |edit| edit.find(&query).map_err(impossible))?;
        count.write(fill(room, found.into_iter().map(|node| node.get())));
        Ok(())
    })
}
