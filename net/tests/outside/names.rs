//! Host names.

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
};

use weald_net::{LookupError, TcpStream, lookup_host};

use crate::tools::{on_each, until, watch};

#[test]
fn localhost_is_found_and_an_invalid_name_is_refused() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let addresses = lookup_host("localhost", 80).await.unwrap();
        assert!(
            addresses
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 80)
        );
        assert!(!addresses.is_empty());
        let bracketed = lookup_host("[::1]", 80).await.unwrap();
        assert_eq!(bracketed, ["[::1]:80".parse().unwrap()]);
        let error = lookup_host("no such\0name", 80).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(r"no such\0name"), "{text}");
    });
}

/// One label of the name is too long, so the resolver asks no server.
#[test]
fn a_name_without_an_address_is_reported_with_its_name() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let host = format!("{}.invalid", "a".repeat(64));
        let looked_up = lookup_host(&host, 80).await.unwrap_err();
        let connected = TcpStream::connect_host(&host, 80).await.unwrap_err();
        for error in [looked_up, connected] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let inner = error.get_ref().unwrap();
            let error: &LookupError = inner.downcast_ref().unwrap();
            assert_eq!(error.host, host);
            assert!(error.to_string().contains(&host), "{error}");
        }
    });
}

#[test]
fn a_name_is_found_while_every_worker_computes() {
    on_each(|runtime| {
        let started = Arc::new(AtomicUsize::new(0));
        let found = Arc::new(AtomicBool::new(false));
        let workers = runtime.metrics().workers;
        let jobs: Vec<_> = (0..workers)
            .map(|_| {
                let (started, found) = (started.clone(), found.clone());
                runtime.spawn(async move {
                    started.fetch_add(1, Ordering::SeqCst);
                    until(|| found.load(Ordering::SeqCst));
                })
            })
            .collect();
        until(|| started.load(Ordering::SeqCst) == workers);
        let addresses = runtime.block_on(async { lookup_host("localhost", 80).await });
        assert!(!addresses.unwrap().is_empty());
        found.store(true, Ordering::SeqCst);
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    });
}

#[test]
fn a_name_is_found_while_every_worker_is_blocked() {
    on_each(|runtime| {
        let started = Arc::new(AtomicUsize::new(0));
        let workers = runtime.metrics().workers;
        let (ends, jobs): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                let started = started.clone();
                let job = runtime.spawn(async move {
                    started.fetch_add(1, Ordering::SeqCst);
                    // Blocks until the sender is dropped.
                    let _dropped = ended.recv();
                });
                (end, job)
            })
            .unzip();
        until(|| started.load(Ordering::SeqCst) == workers);
        let addresses = runtime.block_on(async { lookup_host("localhost", 80).await });
        assert!(!addresses.unwrap().is_empty());
        drop(ends);
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    });
}
