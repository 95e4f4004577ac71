//! What a demo shows at first sight: a past, and a present that goes on.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Moment, Settings};
use weald::forest::{Clock, Forest};
use weald_board::demo::fill;
use weald_board::model::{Boards, DemoClock, Store};

use super::support::*;

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn a_demo_has_a_past_of_days_and_then_goes_on_in_the_present() {
    weald::block_on(async {
        let clock = DemoClock::default();
        let forest = Forest::builder().clock(Arc::new(clock.clone())).build();
        has_a_past(Store::Memory(forest), clock).await;
    });
}

#[test]
fn a_demo_on_disk_has_the_same_past() {
    let directory = tempfile::tempdir().unwrap();
    let path = Directory::create(directory.path()).unwrap();
    let journal = DiskJournal::open_on(path, Settings::new()).unwrap();
    weald::block_on(async {
        let clock = DemoClock::default();
        let builder = Forest::builder().clock(Arc::new(clock.clone()));
        let forest = DiskForest::recover(builder, journal).await.unwrap();
        has_a_past(Store::Disk(forest), clock).await;
    });
}

async fn has_a_past(store: Store, clock: DemoClock) {
    let boards = Boards::of(store).await.unwrap();
    let began = SystemTime::now();
    fill(&boards, &clock).await.unwrap();
    assert!(clock.now() >= began);
    let garden = "garden".parse().unwrap();
    let now = boards.board(&garden).unwrap();
    let messages = now.latest(100);
    let times: Vec<_> = messages.iter().map(|message| message.time).collect();
    assert!(
        times.is_sorted_by(|newer, older| newer > older),
        "{times:?}"
    );
    assert!(times[0] < began && began < times[0] + DAY, "{times:?}");
    assert!(*times.last().unwrap() < began - 3 * DAY, "{times:?}");
    assert!(messages[0].edited() >= Some(began));

    // Times of versions are those of their messages, so a look at a day shows that day.
    let then = boards.board_at(&garden, Moment::Time(began - DAY)).await;
    let then = then.unwrap();
    let written = then.message_count();
    assert!(0 < written && written < now.message_count(), "{written}");
    let latest = then.latest(1)[0].time;
    assert!(latest <= then.time() && then.time() < latest + DAY / 1_000);

    let id = write(&boards, &garden, None, "now").await;
    let board = boards.board(&garden).unwrap();
    assert!(board.time() >= began && board.message(id).unwrap().time >= began);
    boards.close().await;
}
