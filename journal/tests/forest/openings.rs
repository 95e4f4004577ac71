//! Histories of concurrent commits and snapshots are linearizable, even over openings that a power cut or a kill has
//! ended, at any operation of the disk.
//!
//! The versions are the order in which the commits are to have happened. So a history is checked against a plain map,
//! to which the commits that are there after the opening are applied one after the other:
//!
//! - Those are a beginning of all commits, and have each one that was acknowledged at a level that survives the end.
//! - Each has relied on what the map has before it, and makes what is read of its version.
//! - A commit that began after another had returned comes after it, and a reader of a version saw what the map had
//!   then.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pollster::block_on;
use weald_forest::{Commit, CommitError, CommitId, Edit, Forest, Level, Root, TreeHandle, Version};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk};

/// Trees and their attributes, all numbers.
type State = BTreeMap<(usize, &'static str), u64>;

const TREES: [&str; 2] = ["one", "other"];
const NAMES: [&str; 2] = ["x", "y"];

/// How many openings are ended; one more is not.
const OPENINGS: u64 = 3;

/// A generator of numbers by a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Did {
    /// A commit: what it relied on and what it wrote. Without a version nobody was told whether it is there.
    Commit {
        id: CommitId,
        version: Option<Version>,
        level: Level,
        read: State,
        wrote: State,
    },
    /// A snapshot of all trees.
    Snapshot {
        versions: [Version; TREES.len()],
        seen: State,
        is_durable: bool,
        /// The disk may have been off, so that the forest shows what is durable, and nothing else.
        is_late: bool,
    },
}

impl Did {
    /// Whether it was durable when it returned. Otherwise it is lost when the journal fails, and may be there again
    /// after the next opening.
    fn is_durable(&self) -> bool {
        match self {
            Self::Commit { version, level, .. } => version.is_some() && *level == Level::Durable,
            Self::Snapshot { is_durable, .. } => *is_durable,
        }
    }

    fn is_late(&self) -> bool {
        matches!(self, Self::Snapshot { is_late: true, .. })
    }
}

#[derive(Clone, Debug)]
struct Operation {
    called: u64,
    returned: u64,
    did: Did,
}

/// What an opening has found: the versions of each tree but its first one, with what they say.
#[derive(Clone, Debug, Default)]
struct Found {
    /// The newest of the first versions.
    created: Option<Version>,
    commits: BTreeMap<Version, CommitId>,
    trees: Vec<BTreeMap<Version, State>>,
}

impl Found {
    fn end(&self) -> Option<Version> {
        self.created.max(self.commits.keys().next_back().copied())
    }

    /// Whether a version was lost, or is one that nobody knows.
    fn is_lost(&self, version: Version) -> bool {
        Some(version) > self.end()
    }
}

fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    holds.then_some(()).ok_or_else(what)
}

/// Checks a history that has ended, up to the weakest level that survives its end.
fn check(history: &[Operation], found: &Found, survives: Level) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for operation in history {
        match &operation.did {
            Did::Commit {
                id, version, level, ..
            } => {
                known.insert(*id, operation);
                let Some(version) = version else { continue };
                let is_there = found.commits.get(version) == Some(id);
                must(is_there || *level < survives, || {
                    format!("{operation:?} was acknowledged and is lost")
                })?;
                must(is_there || found.is_lost(*version), || {
                    format!("{operation:?} is missing before others")
                })?;
            }
            Did::Snapshot {
                versions,
                is_durable,
                ..
            } => must(
                !is_durable || !versions.iter().any(|version| found.is_lost(*version)),
                || format!("{operation:?} was durable and is lost"),
            )?,
        }
    }
    let states = apply_all(&known, found)?;
    let places: Vec<_> = history
        .iter()
        .filter_map(|operation| Some((operation, place(operation, found)?)))
        .collect();
    for (operation, place) in &places {
        if let Did::Snapshot { seen, .. } = &operation.did {
            let newest = place.iter().flatten().max();
            let state = newest.and_then(|newest| states.range(..=*newest).next_back());
            must(state.is_none_or(|(_, state)| state == seen), || {
                format!("{operation:?} saw what never was")
            })?;
        }
        for (later, its_place) in &places {
            let is_later = operation.returned < later.called
                && (operation.did.is_durable() || !later.did.is_late());
            let strictly = matches!(later.did, Did::Commit { .. });
            let comes_after = place.iter().zip(its_place).all(|places| match places {
                (Some(place), Some(later)) => place < later || !strictly && place == later,
                _ => true,
            });
            must(!is_later || comes_after, || {
                format!("{later:?} does not come after {operation:?}")
            })?;
        }
    }
    Ok(())
}

/// Applies the commits that are there, one after the other; returns what there was after each.
fn apply_all(
    known: &BTreeMap<CommitId, &Operation>,
    found: &Found,
) -> Result<BTreeMap<Version, State>, String> {
    let mut states = BTreeMap::new();
    let empty = NAMES
        .iter()
        .flat_map(|name| [((0, *name), 0), ((1, *name), 0)]);
    let mut state: State = empty.collect();
    for (version, id) in &found.commits {
        let Some(Did::Commit {
            version: told,
            read,
            wrote,
            ..
        }) = known.get(id).map(|operation| &operation.did)
        else {
            return Err(format!("{version} of {id} was refused, or never made"));
        };
        must(told.is_none_or(|told| told == *version), || {
            format!("{id} is {version}, and was told to be {told:?}")
        })?;
        must(read.iter().all(|(key, value)| state[key] == *value), || {
            format!("{version} relied on {read:?}, and there was {state:?}")
        })?;
        state.extend(wrote.clone());
        for (tree, versions) in found.trees.iter().enumerate() {
            let is_of_it = wrote.keys().any(|(of, _)| *of == tree);
            let due: State = state
                .iter()
                .filter(|((of, _), _)| *of == tree)
                .map(|(key, value)| (*key, *value))
                .collect();
            must(versions.get(version) == is_of_it.then_some(&due), || {
                format!("{version} of tree {tree} is {:?}", versions.get(version))
            })?;
        }
        states.insert(*version, state.clone());
    }
    Ok(states)
}

/// Which versions of the trees an operation has made or seen, if they are there.
fn place(operation: &Operation, found: &Found) -> Option<[Option<Version>; TREES.len()]> {
    match &operation.did {
        Did::Commit { id, wrote, .. } => {
            let (version, _) = found.commits.iter().find(|(_, there)| *there == id)?;
            let mut place = [None; TREES.len()];
            wrote
                .keys()
                .for_each(|(tree, _)| place[*tree] = Some(*version));
            Some(place)
        }
        Did::Snapshot { versions, .. } => {
            let is_there = !versions.iter().any(|version| found.is_lost(*version));
            is_there.then(|| versions.map(Some))
        }
    }
}

/// After an opening: versions that are there stay, whatever comes; those that are not there are gone, and never
/// come back.
fn settle(history: &mut Vec<Operation>, found: &Found, now: u64) {
    history.retain_mut(|operation| {
        let is_there = place(operation, found).is_some();
        if !operation.did.is_durable() {
            operation.returned = now;
        }
        match &mut operation.did {
            Did::Commit {
                id, version, level, ..
            } => {
                let is_it = |(at, there): (&Version, &CommitId)| (there == id).then_some(*at);
                (*version, *level) = (found.commits.iter().find_map(is_it), Level::Durable);
            }
            Did::Snapshot { is_durable, .. } => *is_durable = true,
        }
        is_there
    });
}

/// Records what threads do.
#[derive(Default)]
struct Recorder {
    time: AtomicU64,
    ids: AtomicU64,
    history: Mutex<Vec<Operation>>,
}

impl Recorder {
    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, operation: impl FnOnce() -> Option<Did>) {
        let called = self.tick();
        let did = operation();
        let returned = self.tick();
        self.history
            .lock()
            .unwrap()
            .extend(did.map(|did| Operation {
                called,
                returned,
                did,
            }));
    }
}

fn number(root: &Root, name: &str) -> u64 {
    let value = root.tree().root().get(name);
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

fn state_of(tree: usize, root: &Root) -> impl Iterator<Item = ((usize, &'static str), u64)> {
    NAMES
        .map(|name| ((tree, name), number(root, name)))
        .into_iter()
}

fn snapshot(
    (forest, trees): (&DiskForest, &[TreeHandle]),
    is_off: &dyn Fn() -> bool,
    waits: bool,
) -> Did {
    let roots = forest
        .snapshot_all(&trees.iter().collect::<Vec<_>>())
        .unwrap();
    let is_late = is_off();
    let versions = [roots[0].version(), roots[1].version()];
    let newest = versions[0].max(versions[1]);
    let is_durable = waits && block_on(forest.when_durable(newest, Level::Durable)).is_ok();
    let seen = roots
        .iter()
        .enumerate()
        .flat_map(|(tree, root)| state_of(tree, root));
    Did::Snapshot {
        versions,
        seen: seen.collect(),
        is_durable,
        is_late,
    }
}

/// Reads some attributes of some trees and writes others, by chance. `None`, if it was refused.
fn commit(trees: &[TreeHandle], recorder: &Recorder, random: &mut Random) -> Option<Did> {
    let (mut read, mut wrote, mut edits) = (State::new(), State::new(), Vec::new());
    let id = recorder.ids.fetch_add(1, Ordering::SeqCst) + 1;
    let first = random.index(TREES.len());
    for tree in [first, 1 - first].into_iter().take(1 + random.index(2)) {
        let mut edit: Edit = trees[tree].edit();
        let root = edit.root();
        let [from, to] = [NAMES[random.index(2)], NAMES[random.index(2)]];
        let value = edit.attribute(root, from).unwrap();
        let value = value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()));
        read.insert((tree, from), value);
        edit.put_attribute(root, to, id.to_le_bytes()).unwrap();
        wrote.insert((tree, to), id);
        edits.push(edit);
    }
    std::thread::yield_now(); // So that others come in between.
    let id = CommitId(id.into());
    let level = [Level::Accepted, Level::Buffered, Level::Durable][random.index(3)];
    let version = match block_on(Commit::of(edits).unwrap().id(id).level(level)) {
        Ok(committed) => Some(committed.version),
        Err(CommitError::Unknown(_)) => None,
        Err(_) => return None,
    };
    Some(Did::Commit {
        id,
        version,
        level,
        read,
        wrote,
    })
}

fn open(disk: &SimulatedDisk) -> Option<DiskForest> {
    let settings = Settings::new()
        .segment(8 * 1024)
        .silence(Duration::from_millis(1));
    let journal = DiskJournal::open_on(disk.clone(), settings).ok()?;
    block_on(DiskForest::recover(Forest::builder(), journal)).ok()
}

fn found(forest: &DiskForest) -> Found {
    let mut found = Found::default();
    for (tree, name) in TREES.iter().enumerate() {
        let handle = forest.get(name).unwrap();
        let mut versions = BTreeMap::new();
        let mut roots = handle.versions().into_iter();
        found.created = found.created.max(roots.next().map(|root| root.version()));
        for root in roots {
            versions.insert(root.version(), state_of(tree, &root).collect());
            found.commits.insert(root.version(), root.commit_id());
        }
        found.trees.push(versions);
    }
    found
}

/// What three threads do at the same time, until each has done enough.
fn work(
    forest: &DiskForest,
    is_off: &(dyn Fn() -> bool + Sync),
    (recorder, random): (&Recorder, &mut Random),
) {
    let trees = TREES.map(|name| forest.get(name).unwrap());
    std::thread::scope(|scope| {
        for seed in [(); 3].map(|()| random.below(1 << 30)) {
            let trees = &trees;
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..10 {
                    recorder.record(|| match random.below(6) {
                        waits @ 0..2 => Some(snapshot((forest, trees), is_off, waits == 1)),
                        _ => commit(trees, recorder, &mut random),
                    });
                    if random.below(20) == 0 {
                        let _ = block_on(forest.checkpoint());
                    }
                }
            });
        }
    });
}

/// Openings one after the other, each ended by a kill or a power cut, and some before they were open.
fn history(seed: u64) {
    let (mut random, recorder) = (Random(seed), Recorder::default());
    let mut disk = SimulatedDisk::new();
    let forest = open(&disk).unwrap();
    for name in TREES {
        block_on(forest.create(name)).unwrap();
    }
    drop(forest);
    let mut survives = Level::Durable;
    for opening in 0..=OPENINGS {
        let off_at = disk.operations() + random.below(90);
        disk.cut_power_at(off_at);
        if opening == OPENINGS {
            disk.cut_power_at(u64::MAX);
        }
        let forest = open(&disk);
        assert!(
            forest.is_some() || opening < OPENINGS,
            "seed {seed}: it cannot be opened"
        );
        if let Some(forest) = forest {
            let found = found(&forest);
            let mut history = recorder.history.lock().unwrap();
            let checked = check(&history, &found, survives);
            assert_eq!(
                checked,
                Ok(()),
                "seed {seed}, opening {opening}: {found:#?}, {history:#?}"
            );
            settle(&mut history, &found, recorder.tick());
            drop(history);
            let its_disk = disk.clone();
            let is_off = move || its_disk.operations() >= off_at;
            work(&forest, &is_off, (&recorder, &mut random));
            if random.below(3) == 0 {
                (disk, survives) = (disk.after_kill(), Level::Buffered);
                continue;
            }
        }
        (disk, survives) = (disk.after_power_cut(random.below(1 << 30)), Level::Durable);
    }
}

#[test]
fn soak_histories_over_openings_are_linearizable() {
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    for seed in 0.. {
        history(seed);
        if seed >= 20 && Instant::now() >= end {
            return;
        }
    }
}

fn version(number: u64) -> Version {
    Version {
        incarnation: 1,
        number,
    }
}

fn x(value: u64) -> State {
    State::from([((0, "x"), value)])
}

/// A commit of this number, which has relied on a value of `x`.
fn wrote(times: (u64, u64), number: u64, relied: u64) -> Operation {
    let (called, returned) = times;
    let did = Did::Commit {
        id: CommitId(number.into()),
        version: Some(version(number)),
        level: Level::Durable,
        read: x(relied),
        wrote: x(number),
    };
    Operation {
        called,
        returned,
        did,
    }
}

fn saw(times: (u64, u64), number: u64, value: u64) -> Operation {
    let (called, returned) = times;
    let mut seen: State = [((0, "y"), 0), ((1, "x"), 0), ((1, "y"), 0)].into();
    seen.extend(x(value));
    let did = Did::Snapshot {
        versions: [version(number), version(0)],
        seen,
        is_durable: true,
        is_late: false,
    };
    Operation {
        called,
        returned,
        did,
    }
}

#[test]
fn the_checker_knows_right_from_wrong() {
    let there = |numbers: &[u64]| {
        let states = numbers.iter().map(|number| {
            let mut state = x(*number);
            state.insert((0, "y"), 0);
            (version(*number), state)
        });
        let commits = numbers
            .iter()
            .map(|number| (version(*number), CommitId((*number).into())));
        Found {
            created: None,
            commits: commits.collect(),
            trees: vec![states.collect(), BTreeMap::new()],
        }
    };
    let fails = |history: &[Operation], numbers: &[u64], what: &str| {
        let checked = check(history, &there(numbers), Level::Durable);
        let text = checked.expect_err(what);
        assert!(text.contains(what), "{text}");
    };
    let two = [wrote((0, 1), 1, 0), wrote((2, 3), 2, 1)];
    assert_eq!(check(&two, &there(&[1, 2]), Level::Durable), Ok(()));
    fails(&two, &[1], "was acknowledged and is lost");
    fails(&two[..1], &[1, 2], "was refused, or never made");
    let mut weaker = two.clone();
    for operation in &mut weaker {
        if let Did::Commit { level, .. } = &mut operation.did {
            *level = Level::Accepted;
        }
    }
    assert_eq!(check(&weaker, &there(&[1]), Level::Durable), Ok(()));
    fails(&weaker, &[2], "is missing before others");
    // An update was lost.
    fails(
        &[wrote((0, 3), 1, 0), wrote((1, 2), 2, 0)],
        &[1, 2],
        "relied on",
    );
    // The second one came first.
    fails(
        &[wrote((2, 3), 1, 0), wrote((0, 1), 2, 1)],
        &[1, 2],
        "does not come after",
    );
    // Snapshots.
    let with = |seen: Operation| [two[0].clone(), two[1].clone(), seen];
    assert_eq!(
        check(&with(saw((4, 5), 2, 2)), &there(&[1, 2]), Level::Durable),
        Ok(())
    );
    assert_eq!(
        check(&with(saw((1, 5), 1, 1)), &there(&[1, 2]), Level::Durable),
        Ok(())
    );
    fails(&with(saw((4, 5), 1, 1)), &[1, 2], "does not come after");
    fails(&with(saw((4, 5), 2, 1)), &[1, 2], "saw what never was");
    fails(
        &[wrote((0, 1), 1, 0), saw((2, 3), 2, 2)],
        &[1],
        "was durable and is lost",
    );
}
