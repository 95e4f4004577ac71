//! Names of hosts.

use weald_net::lookup_host;

use crate::tools::watch;

#[test]
fn the_name_of_this_machine_is_known_and_one_that_cannot_be_is_not() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let addresses = lookup_host("localhost", 80).await.unwrap();
        assert!(
            addresses
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 80)
        );
        assert!(!addresses.is_empty());
        assert!(lookup_host("no such\0name", 80).await.is_err());
    });
}
