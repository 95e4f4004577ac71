//! A master key: without it the files show no key of erasable bytes.

use weald_forest::journal::Journal;
use weald_journal::{DiskJournal, MasterKey, OpenError, ReadOnlyJournal, Settings, SimulatedDisk};

use crate::erasing::{append, blob, read};
use crate::records::{flush, small};

fn master(number: u8) -> MasterKey {
    MasterKey::new([number; 32])
}

fn open(disk: &SimulatedDisk, settings: Settings) -> Result<DiskJournal, OpenError> {
    DiskJournal::open_on(disk.clone(), settings)
}

fn sealed(number: u8) -> Settings {
    small().master_key(master(number))
}

/// The key of the first blob, as it lies in a key file that is not sealed.
fn first_key(disk: &SimulatedDisk) -> Vec<u8> {
    let mut names = disk.names().into_iter();
    let name = names.find(|name| name.ends_with(".keys")).unwrap();
    disk.file(&name).unwrap()[52..84].to_vec()
}

fn have(disk: &SimulatedDisk, bytes: &[u8]) -> bool {
    disk.names().iter().any(|name| {
        let file = disk.file(name).unwrap();
        file.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn opening_with_a_master_key_seals_what_lay_open_and_nobody_reads_it_without() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk, small()).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    drop(journal);
    let key = first_key(&disk);
    assert!(have(&disk, &key));
    let journal = open(&disk, sealed(1)).unwrap();
    append(&journal, 2, (&[blob(2, 60), blob(3, 70)], None)).unwrap();
    append(&journal, 3, (&[], Some(3))).unwrap();
    flush(&journal);
    let check = |journal: &dyn Journal| {
        let found = [1, 2, 3].map(|number| {
            pollster::block_on(journal.blob(blob(number, 0).id))
                .unwrap()
                .map(|bytes| bytes.len())
        });
        assert_eq!(found, [Some(50), Some(60), None]);
    };
    check(&journal);
    assert!(!have(&disk, &key));
    check(&ReadOnlyJournal::open_with(disk.clone(), &sealed(1)).unwrap());
    drop(journal);
    for seed in 0..20 {
        let disk = disk.after_power_cut(seed);
        assert!(!have(&disk, &key), "seed {seed}");
        check(&open(&disk, sealed(1)).unwrap());
    }
    let before: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
    for (settings, gives) in [(small(), false), (sealed(2), true)] {
        for error in [
            open(&disk, settings.clone()).unwrap_err(),
            ReadOnlyJournal::open_with(disk.clone(), &settings).unwrap_err(),
        ] {
            assert!(
                matches!(error, OpenError::Sealed { has_key, .. } if has_key == gives),
                "{error}"
            );
        }
    }
    let after: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
    assert!(
        before == after,
        "an opening that was refused has changed something"
    );
}

#[test]
fn a_master_key_is_exchanged_and_given_up() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk, sealed(1)).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    drop(journal);
    let exchanged = sealed(2).former_master_key(master(1));
    assert!(read(&open(&disk, exchanged).unwrap(), 1).is_some());
    for refused in [sealed(1), small()] {
        assert!(open(&disk, refused).is_err());
    }
    assert!(read(&open(&disk, sealed(2)).unwrap(), 1).is_some());
    let given_up = small().former_master_key(master(2));
    assert!(read(&open(&disk, given_up).unwrap(), 1).is_some());
    assert!(read(&open(&disk, small()).unwrap(), 1).is_some());
}

#[test]
fn a_damaged_sealed_key_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk, sealed(1)).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    drop(journal);
    let mut names = disk.names().into_iter();
    let name = names.find(|name| name.ends_with(".keys")).unwrap();
    let whole = disk.file(&name).unwrap();
    // The head has 52 bytes, and the entry 110.
    for at in 0..162 {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        disk.set_file(&name, Some(&damaged));
        let error = open(&disk.after_kill(), sealed(1)).unwrap_err();
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "byte {at}: {error}"
        );
    }
}
