//! Files are read, written and listed.

use std::io::{ErrorKind, SeekFrom};

use weald_net::{
    ReadEnd,
    fs::{self, File},
};

use crate::tools::on_each;

#[test]
fn a_file_is_written_read_and_removed() {
    on_each(|runtime| {
        runtime.block_on(async {
            let folder = std::env::temp_dir().join(format!("weald-files-{}", std::process::id()));
            fs::create_dir_all(&folder).await.unwrap();
            let path = folder.join("a");
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            let file = File::open_with(&path, options).await.unwrap();
            file.write_all("0123456789").await.unwrap();
            file.write_all_at(3, "abc").await.unwrap();
            file.sync_data().await.unwrap();
            assert_eq!(file.seek(SeekFrom::Start(2)).await.unwrap(), 2);
            assert_eq!(file.read(4).await.unwrap(), b"2abc");
            assert_eq!(file.read_to_end().await.unwrap(), b"6789");
            assert_eq!(file.read(4).await.unwrap(), b"");
            assert_eq!(file.read_at(8, 100).await.unwrap(), b"89");
            // More than there is memory.
            assert_eq!(file.read_at(8, 1 << 60).await.unwrap(), b"89");
            assert_eq!(file.seek(SeekFrom::Start(7)).await.unwrap(), 7);
            assert_eq!(file.read(1 << 60).await.unwrap(), b"789");
            file.set_len(5).await.unwrap();
            assert_eq!(file.metadata().await.unwrap().len(), 5);
            let moved = folder.join("b");
            fs::rename(&path, &moved).await.unwrap();
            assert_eq!(fs::read_to_string(&moved).await.unwrap(), "012ab");
            let entries = fs::read_dir(&folder).await.unwrap();
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0].path(), moved);
            assert_eq!(
                fs::read(&path).await.unwrap_err().kind(),
                ErrorKind::NotFound
            );
            let mut reader = File::open(&moved).await.unwrap().into_reader().unwrap();
            assert_eq!(reader.read_to_end().await.unwrap(), b"012ab");
            let read = fs::read(&path).await.map(|_bytes| ());
            let opened = File::open(&path).await.map(|_file| ());
            let end = ReadEnd::open(&path).await.map(|_end| ());
            let described = fs::metadata(&path).await.map(|_metadata| ());
            for error in [read, opened, end, described].map(Result::unwrap_err) {
                assert_eq!(error.kind(), ErrorKind::NotFound);
                let text = error.to_string();
                assert!(text.contains(path.to_str().unwrap()), "{text}");
            }
            let missing = folder.join("missing").join("c");
            let written = fs::write(&missing, "").await.unwrap_err();
            let reason = written.get_ref().unwrap().downcast_ref::<fs::PathError>();
            let reason = &reason.unwrap().reason;
            assert_eq!(reason.kind(), ErrorKind::NotFound);
            assert!(reason.raw_os_error().is_some(), "{written}");
            let copied = fs::copy(&moved, &missing).await.map(|_length| ());
            let renamed = fs::rename(&moved, &missing).await;
            for error in [copied, renamed].map(Result::unwrap_err) {
                let paths = format!("{} to {}", moved.display(), missing.display());
                assert!(error.to_string().contains(&paths), "{error}");
            }
            fs::remove_file(&moved).await.unwrap();
            std::fs::remove_dir(&folder).unwrap();
        });
    });
}

#[test]
fn directories_are_created_and_removed() {
    on_each(|runtime| {
        runtime.block_on(async {
            let folder = std::env::temp_dir().join(format!("weald-folders-{}", std::process::id()));
            fs::create_dir(&folder).await.unwrap();
            let again = fs::create_dir(&folder).await.unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AlreadyExists);
            fs::create_dir_all(folder.join("a/b")).await.unwrap();
            fs::write(folder.join("a/b/c"), "twelve bytes")
                .await
                .unwrap();
            let copied = fs::copy(folder.join("a/b/c"), folder.join("d")).await;
            assert_eq!(copied.unwrap(), 12);
            std::os::unix::fs::symlink("d", folder.join("link")).unwrap();
            let link = fs::symlink_metadata(folder.join("link")).await.unwrap();
            assert!(link.is_symlink());
            let target = fs::metadata(folder.join("link")).await.unwrap();
            assert_eq!(target.len(), 12);
            let real = fs::canonicalize(folder.join("a/../link")).await.unwrap();
            assert_eq!(real, fs::canonicalize(folder.join("d")).await.unwrap());
            assert!(
                fs::remove_dir(folder.join("a")).await.is_err(),
                "the directory is not empty"
            );
            fs::create_dir(folder.join("empty")).await.unwrap();
            fs::remove_dir(folder.join("empty")).await.unwrap();
            fs::remove_dir_all(&folder).await.unwrap();
            let gone = fs::metadata(&folder).await.unwrap_err();
            assert_eq!(gone.kind(), ErrorKind::NotFound);
        });
    });
}
