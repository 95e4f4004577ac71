//! A phone book: a server with typed requests, supervised, whose entries survive its crash.
//!
//! `cargo run -p weald-process --example phone_book`

use std::{collections::BTreeMap, error::Error, time::Duration};

use weald_kernel::Runtime;
use weald_process::{
    Accept, Answer, ChildSpec, Estate, Handover, Name, Reply, Server, ServerMessage, ServerRef,
    ServerScope, Step, Strategy, Supervisor, monitor,
};

type Entries = BTreeMap<String, String>;

static BOOK: Name<ServerMessage<PhoneBook>> = Name::new("phone book");

struct PhoneBook(Estate<Entries>);

struct Enter(&'static str, &'static str);
struct LookUp(&'static str);
struct TearApart;

impl Server for PhoneBook {
    type Info = ();

    async fn begin(&mut self, scope: &mut ServerScope<PhoneBook>) -> Step {
        let registered = BOOK.register(scope.server().pid());
        registered.expect("there is one phone book");
        Step::Receive
    }
}

impl Accept<Enter> for PhoneBook {
    async fn accept(&mut self, Enter(name, number): Enter, _: &mut ServerScope<Self>) -> Step {
        self.0.insert(name.to_owned(), number.to_owned());
        Step::Receive
    }
}

impl Accept<TearApart> for PhoneBook {
    async fn accept(&mut self, _: TearApart, _: &mut ServerScope<Self>) -> Step {
        panic!("torn apart")
    }
}

impl Answer<LookUp> for PhoneBook {
    type Value = Option<String>;

    async fn answer(
        &mut self,
        LookUp(name): LookUp,
        reply: Reply<Option<String>>,
        _: &mut ServerScope<Self>,
    ) -> Step {
        let _unheard = reply.send(self.0.get(name).cloned());
        Step::Receive
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let entries = Handover::new();
    let book = ChildSpec::server("phone book", move || {
        PhoneBook(
            entries
                .claim(Entries::new)
                .expect("the former one has ended"),
        )
    });
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(book)
        .start()
        .await?;
    let first = ServerRef::of(BOOK.whereis()?);
    first.cast(Enter("Ada", "1815"));
    let down = monitor(&first);
    first.cast(TearApart);
    println!("{}", down.await);
    // A unit that learns of the end finds the successor by the name.
    let second = ServerRef::of(BOOK.registered().await?);
    let number = second
        .request(LookUp("Ada"))
        .within(Duration::from_secs(1))
        .await?;
    println!("Ada: {}", number.as_deref().unwrap_or("unknown"));
    supervisor.stop().await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().build()?;
    runtime.block_on(run())
}

#[test]
fn the_entries_survive() {
    for seed in 0..100 {
        Runtime::test(seed).block_on(run()).unwrap();
    }
}
