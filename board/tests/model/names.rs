//! What the disk has of a name's passphrase.

use weald::forest::disk::{DiskForest, DiskJournal, Settings, SimulatedDisk};
use weald::forest::{Forest, Value};
use weald_board::model::{BoardError, Boards, NameKey, Store};

const FIRST: &str = "the first passphrase";

#[test]
fn a_name_survives_a_restart_and_its_old_passphrase_is_erased() {
    weald::block_on(async {
        let disk = SimulatedDisk::new();
        let open = async || {
            let journal = DiskJournal::open_on(disk.clone(), Settings::new()).unwrap();
            let forest = DiskForest::recover(Forest::builder(), journal)
                .await
                .unwrap();
            (
                forest.clone(),
                Boards::of(Store::Disk(forest)).await.unwrap(),
            )
        };
        let (_, boards) = open().await;
        let key = NameKey::of("Ada").unwrap();
        assert!(matches!(
            boards.prove(key, FIRST).await,
            Err(BoardError::NoName)
        ));
        boards.protect("Ada", FIRST).await.unwrap();
        boards.close().await;
        drop(boards);

        let (forest, boards) = open().await;
        assert!(matches!(
            boards.protect("ada", FIRST).await,
            Err(BoardError::NameTaken)
        ));
        boards.prove(key, FIRST).await.unwrap();
        let before = forest.get("names").unwrap().snapshot();
        boards
            .change_passphrase("Ada", FIRST, "the second passphrase")
            .await
            .unwrap();
        let old = before.tree().root().child(0).unwrap();
        assert!(matches!(
            forest.value(old, "hash"),
            Some(Value::Erased { .. })
        ));
        assert!(matches!(
            boards.prove(key, FIRST).await,
            Err(BoardError::WrongPassphrase)
        ));
        boards.prove(key, "the second passphrase").await.unwrap();
        boards.free(key).await.unwrap();
        assert!(!boards.is_protected(key));
        assert!(!disk.holds(b"Ada"), "the tree has no names");
    });
}
