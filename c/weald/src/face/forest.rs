//! Forests: opened in memory or in a directory; their trees by name; watches.

#![allow(unsafe_code)]

use std::{
    ffi::c_char,
    mem::MaybeUninit,
    ops::Deref,
    sync::{Mutex, TryLockError},
};

use weald::{
    blocking,
    forest::{
        CommitError, EditError, Forest, Level, NameError, Path, Since, TreeHandle as Tree,
        VersionError, Watch, WatchEnd,
        disk::{DiskForest, DiskJournal, Moment, OpenForestError, PastError, ReadOnlyForest},
    },
};

use super::views::{TreeVersion, ViewHandle, ViewObject};
use crate::{
    arguments::{Options, optional_text, options, text},
    codes::{
        Code, Failure, WEALD_ARGUMENT, WEALD_BUSY, WEALD_CLOSED, WEALD_CONFLICT, WEALD_HANDLE,
        WEALD_LAGGED, WEALD_MISSING, WEALD_NULL, WEALD_REFUSED, WEALD_SYSTEM, WEALD_TAKEN, failed,
        failure,
    },
    guard::{give, guard, needed},
    handles::{self, Object},
    message::{Bytes, Message},
    waits::{wait, wait_at_most, wait_whole},
};

/// A forest: trees with names, whose versions are kept. Any thread and any unit may use it.
pub type ForestHandle = u64;

/// A tree of a forest. Any thread and any unit may use it.
pub type TreeHandle = u64;

/// A watch of a tree, which yields its commits in their order. One call at a time.
pub type WatchHandle = u64;

/// How far a commit must have got before it returns: as far as the forest gets, for one on disk until it survives the
/// loss of power.
pub const WEALD_LEVEL_DEFAULT: i32 = 0;
/// The forest has taken it.
pub const WEALD_LEVEL_ACCEPTED: i32 = 1;
/// It survives the end of the program.
pub const WEALD_LEVEL_BUFFERED: i32 = 2;
/// It survives the loss of power.
pub const WEALD_LEVEL_DURABLE: i32 = 3;

/// The level of a number. None: the default one.
pub(super) fn level_of(level: i32) -> Result<Option<Level>, Failure> {
    match level {
        WEALD_LEVEL_DEFAULT => Ok(None),
        WEALD_LEVEL_ACCEPTED => Ok(Some(Level::Accepted)),
        WEALD_LEVEL_BUFFERED => Ok(Some(Level::Buffered)),
        WEALD_LEVEL_DURABLE => Ok(Some(Level::Durable)),
        _ => {
            let sentence = format!("there is no level {level}");
            Err(failure(WEALD_ARGUMENT, sentence))
        }
    }
}

/// How a forest is opened. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ForestOptions {
    /// The size of this struct.
    pub size: usize,
    /// How many of the newest versions of each tree are kept in memory; 0: the default, 1000. Versions with tags are
    /// kept as well.
    pub keep: usize,
    /// What a commit with WEALD_LEVEL_DEFAULT waits for: one of WEALD_LEVEL_DEFAULT, WEALD_LEVEL_ACCEPTED,
    /// WEALD_LEVEL_BUFFERED, WEALD_LEVEL_DURABLE. A forest in memory takes the first two.
    pub level: i32,
}

// SAFETY: the size comes first, and the others are numbers.
unsafe impl Options for ForestOptions {
    const DEFAULT: ForestOptions = ForestOptions {
        size: size_of::<ForestOptions>(),
        keep: 0,
        level: 0,
    };
}

enum ForestObject {
    InMemory(Forest),
    OnDisk(DiskForest),
    /// As it was once.
    Past(ReadOnlyForest),
}

/// What all are.
type Trees = <Forest as Deref>::Target;

impl ForestObject {
    fn trees(&self) -> &Trees {
        match self {
            ForestObject::InMemory(forest) => forest,
            ForestObject::OnDisk(forest) => forest,
            ForestObject::Past(forest) => forest,
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
    guard(|| open(directory, ForestOptions::DEFAULT, forest))
}

/// weald_forest_open with options, which may be null. WEALD_ARGUMENT if the forest has no such level.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_open_with(
    directory: *const c_char,
    options: *const ForestOptions,
    forest: Option<&mut MaybeUninit<ForestHandle>>,
) -> Code {
    guard(|| open(directory, self::options(options)?, forest))
}

fn open(
    directory: *const c_char,
    options: ForestOptions,
    forest: Option<&mut MaybeUninit<ForestHandle>>,
) -> Result<(), Failure> {
    let directory = optional_text(directory)?;
    let forest = needed(forest)?;
    let mut builder = Forest::builder();
    if options.keep > 0 {
        builder = builder.keep(options.keep);
    }
    if let Some(level) = level_of(options.level)? {
        if level > Level::Accepted && directory.is_none() {
            let sentence = "a forest in memory has no such level";
            return Err(failure(WEALD_ARGUMENT, sentence));
        }
        builder = builder.level(level);
    }
    let opened = match directory {
        None => ForestObject::InMemory(builder.build()),
        Some(directory) => {
            let opened = wait(async {
                let journal = blocking(|| DiskJournal::open(directory))?;
                DiskForest::recover(builder, journal).await
            });
            ForestObject::OnDisk(opened.map_err(|error| failed(WEALD_SYSTEM, &error))?)
        }
    };
    forest.write(handles::add(opened)?);
    Ok(())
}

/// A forest on disk as it was when `version` was its newest version, however long ago: read from its files, for
/// reading only. Its trees have the names that they had. WEALD_MISSING if the forest never had the version, or no
/// longer has it; WEALD_ARGUMENT for a forest in memory, where weald_tree_view finds the versions that are kept.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_at(
    forest: ForestHandle,
    version: Option<&TreeVersion>,
    past: Option<&mut MaybeUninit<ForestHandle>>,
) -> Code {
    guard(|| {
        let past = needed(past)?;
        let version = version.ok_or_else(|| failure(WEALD_NULL, "the version is null"))?;
        let forest = handles::get::<ForestObject>(forest)?;
        let ForestObject::OnDisk(forest) = &*forest else {
            return Err(failure(WEALD_ARGUMENT, "the forest is not on disk"));
        };
        let found = wait(forest.at(Moment::Version(version.get())));
        let found = found.map_err(|error| match error {
            OpenForestError::Past(PastError::Failed) => failed(WEALD_SYSTEM, &error),
            OpenForestError::Past(_) => failed(WEALD_MISSING, &error),
            _ => failed(WEALD_SYSTEM, &error),
        })?;
        past.write(handles::add(ForestObject::Past(found))?);
        Ok(())
    })
}

/// Closes a forest, and releases its handle. What was committed is in its files then, and the directory may be opened
/// again, even while handles of its trees are left. A forest in memory is lost with its last handle.
#[unsafe(no_mangle)]
pub extern "C" fn weald_forest_close(forest: ForestHandle) -> Code {
    guard(|| {
        wait_whole(|| {
            let forest = handles::take::<ForestObject>(forest)?;
            Ok(async move {
                if let ForestObject::OnDisk(forest) = &*forest {
                    forest.close().await;
                }
            })
        })
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
