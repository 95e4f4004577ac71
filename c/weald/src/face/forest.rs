//! Forests: opened in memory or in a directory; their trees by name; watches.

#![allow(unsafe_code)]

use std::{
    ffi::c_char,
    mem::MaybeUninit,
    ops::Deref,
    sync::{Mutex, TryLockError},
};

use weald::forest::{
    CommitError, EditError, Forest, NameError, Path, Since, TreeHandle as Tree, VersionError,
    Watch, WatchEnd, disk::DiskForest,
};

use super::views::{TreeVersion, ViewHandle, ViewObject};
use crate::{
    arguments::{optional_text, text},
    codes::{
        Code, Failure, WEALD_ARGUMENT, WEALD_BUSY, WEALD_CLOSED, WEALD_CONFLICT, WEALD_HANDLE,
        WEALD_LAGGED, WEALD_MISSING, WEALD_REFUSED, WEALD_SYSTEM, WEALD_TAKEN, failed, failure,
    },
    guard::{check_cancel, give, guard, needed},
    handles::{self, Object},
    message::{Bytes, Message},
    waits::{wait, wait_at_most},
};

/// A forest: trees with names, whose versions are kept. Any thread and any unit may use it.
pub type ForestHandle = u64;

/// A tree of a forest. Any thread and any unit may use it.
pub type TreeHandle = u64;

/// A watch of a tree, which yields its commits in their order. One call at a time.
pub type WatchHandle = u64;

enum ForestObject {
    InMemory(Forest),
    OnDisk(DiskForest),
}

/// What both are.
type Trees = <Forest as Deref>::Target;

impl ForestObject {
    fn trees(&self) -> &Trees {
        match self {
            ForestObject::InMemory(forest) => forest,
            ForestObject::OnDisk(forest) => forest,
        }
    }
}

pub(super) struct TreeObject(pub(super) Tree);

struct WatchObject(Mutex<Watch>);

impl Object for ForestObject {
    fn name() -> &'static str {
        "forest"
    }
}

impl Object for TreeObject {
    fn name() -> &'static str {
        "tree"
    }
}

impl Object for WatchObject {
    fn name() -> &'static str {
        "watch"
    }
}

/// Opens the forest in a directory, which is created if it is missing; or, if `directory` is null, a new one in
/// memory. A commit to a forest on disk survives the loss of power once it has returned, unless it asks for less.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_open(
    directory: *const c_char,
    forest: Option<&mut MaybeUninit<ForestHandle>>,
) -> Code {
    guard(|| {
        let directory = optional_text(directory)?;
        let forest = needed(forest)?;
        let opened = match directory {
            None => ForestObject::InMemory(Forest::new()),
            Some(directory) => {
                let opened = wait(DiskForest::open(directory));
                ForestObject::OnDisk(opened.map_err(|error| failed(WEALD_SYSTEM, &error))?)
            }
        };
        forest.write(handles::add(opened)?);
        Ok(())
    })
}

/// Closes a forest, and releases its handle. What was committed is in its files then, and the directory may be opened
/// again, even while handles of its trees are left. A forest in memory is lost with its last handle.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_close(forest: ForestHandle) -> Code {
    guard(|| {
        // While the caller has its handle yet.
        check_cancel();
        let forest = handles::take::<ForestObject>(forest)?;
        if let ForestObject::OnDisk(forest) = &*forest {
            wait(forest.close());
        }
        Ok(())
    })
}

/// The names of all trees, sorted, each with a newline behind it, which no name contains.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_names(
    forest: ForestHandle,
    names: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let names = needed(names)?;
        let list = handles::get::<ForestObject>(forest)?.trees().list();
        let text: String = list.iter().flat_map(|name| [name, "\n"]).collect();
        Message::of(text.as_bytes())?.give(names);
        Ok(())
    })
}

/// Creates a tree of one node. WEALD_TAKEN if there is one of this name.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_create(
    forest: ForestHandle,
    name: *const c_char,
    tree: Option<&mut MaybeUninit<TreeHandle>>,
) -> Code {
    guard(|| {
        let name = text(name)?;
        let tree = needed(tree)?;
        let forest = handles::get::<ForestObject>(forest)?;
        let created = wait(forest.trees().create(name)).map_err(refused)?;
        tree.write(handles::add(TreeObject(created))?);
        Ok(())
    })
}

/// The tree of a name. WEALD_MISSING if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_get(
    forest: ForestHandle,
    name: *const c_char,
    tree: Option<&mut MaybeUninit<TreeHandle>>,
) -> Code {
    guard(|| {
        let name = text(name)?;
        let tree = needed(tree)?;
        let forest = handles::get::<ForestObject>(forest)?;
        let found = forest.trees().get(name).map_err(|error| no_name(&error))?;
        tree.write(handles::add(TreeObject(found))?);
        Ok(())
    })
}

/// Deletes the tree of a name. Its handles and its versions can still be read.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_delete(forest: ForestHandle, name: *const c_char) -> Code {
    guard(|| {
        let name = text(name)?;
        let forest = handles::get::<ForestObject>(forest)?;
        wait(forest.trees().delete(name)).map_err(refused)?;
        Ok(())
    })
}

/// Renames a tree.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_rename(
    forest: ForestHandle,
    name: *const c_char,
    new_name: *const c_char,
) -> Code {
    guard(|| {
        let (name, new_name) = (text(name)?, text(new_name)?);
        let forest = handles::get::<ForestObject>(forest)?;
        wait(forest.trees().rename(name, new_name)).map_err(refused)?;
        Ok(())
    })
}

/// The name of a tree.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_name(tree: TreeHandle, name: Option<&mut MaybeUninit<Bytes>>) -> Code {
    guard(|| {
        let name = needed(name)?;
        let tree = handles::get::<TreeObject>(tree)?;
        Message::of(tree.0.name().as_bytes())?.give(name);
        Ok(())
    })
}

/// A view of a version of a tree: of the one at `version`, or of the newest one if that is null. WEALD_MISSING if
/// the version does not exist, or is no longer kept in memory.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_view(
    tree: TreeHandle,
    version: Option<&TreeVersion>,
    view: Option<&mut MaybeUninit<ViewHandle>>,
) -> Code {
    guard(|| {
        let view = needed(view)?;
        let tree = handles::get::<TreeObject>(tree)?;
        let snapshot = match version {
            None => tree.0.snapshot(),
            Some(version) => {
                let kept = tree.0.kept_at(version.get());
                kept.map_err(|error| no_version(&error))?
            }
        };
        view.write(handles::add(ViewObject(snapshot))?);
        Ok(())
    })
}

/// Watches a tree: the watch yields the commits after `since`, or from now on if that is null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_tree_watch(
    tree: TreeHandle,
    since: Option<&TreeVersion>,
    watch: Option<&mut MaybeUninit<WatchHandle>>,
) -> Code {
    guard(|| {
        let watch = needed(watch)?;
        let tree = handles::get::<TreeObject>(tree)?;
        let since = since.map_or(Since::Now, |version| Since::Version(version.get()));
        let watched = tree.0.watch(&Path::default(), since);
        let watched = watched.map_err(|error| failed(WEALD_MISSING, &error))?;
        watch.write(handles::add(WatchObject(Mutex::new(watched)))?);
        Ok(())
    })
}

/// Waits for the next commit. `version` gets its version, and `view` a view of the tree as it left it, which is to be
/// released; either may be null. WEALD_LAGGED if commits were missed: the next call goes on behind them. WEALD_CLOSED
/// if the tree was deleted, or its journal was closed. WEALD_TIMED_OUT if no commit came in time.
#[unsafe(no_mangle)]
pub extern "C" fn weald_watch_next(
    watch: WatchHandle,
    limit_ns: i64,
    version: Option<&mut MaybeUninit<TreeVersion>>,
    view: Option<&mut MaybeUninit<ViewHandle>>,
) -> Code {
    guard(|| {
        let watch = handles::get::<WatchObject>(watch)?;
        let mut watch = match watch.0.try_lock() {
            Ok(watch) => watch,
            Err(TryLockError::Poisoned(watch)) => watch.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(failure(WEALD_BUSY, "another call uses the watch"));
            }
        };
        let seen = wait_at_most(watch.next(), limit_ns)?.map_err(|end| match end {
            WatchEnd::Lagged { .. } => failed(WEALD_LAGGED, &end),
            _ => failed(WEALD_CLOSED, &end),
        })?;
        give(version, TreeVersion::of(seen.after.version()));
        if let Some(view) = view {
            view.write(handles::add(ViewObject(seen.after))?);
        }
        Ok(())
    })
}

pub(super) fn no_version(error: &VersionError) -> Failure {
    failed(WEALD_MISSING, error)
}

fn no_name(error: &NameError) -> Failure {
    let code = match error {
        NameError::Taken(_) => WEALD_TAKEN,
        NameError::Missing(_) => WEALD_MISSING,
        _ => WEALD_ARGUMENT,
    };
    failed(code, error)
}

/// Why a commit, or another change, was not made.
pub(super) fn refused(error: CommitError) -> Failure {
    let code = match &error {
        CommitError::Name(error) => return no_name(error),
        CommitError::Version(error) => return no_version(error),
        CommitError::Conflict(_) => WEALD_CONFLICT,
        CommitError::Deleted(_) => WEALD_CLOSED,
        CommitError::Level { .. } => WEALD_ARGUMENT,
        CommitError::Reentrant => WEALD_BUSY,
        _ => WEALD_SYSTEM,
    };
    failed(code, &error)
}

/// Why an edit was not made.
pub(super) fn impossible(error: EditError) -> Failure {
    let code = match &error {
        EditError::Missing(_) | EditError::NoAttribute { .. } => WEALD_MISSING,
        EditError::OtherTree(_) => WEALD_HANDLE,
        _ => WEALD_REFUSED,
    };
    failed(code, &error)
}
