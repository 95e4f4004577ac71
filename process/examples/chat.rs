//! A chat room with presence: users enter, talk, leave or lose their line, and can ask who is there.
//!
//! Nobody has to say goodbye. The room is a group, which a process leaves when it ends. The presence is a server that
//! monitors the users, and so is told of every end. It is supervised, and hands its list over: a successor monitors
//! those whom it inherits, and a monitor of a process that has ended tells so at once. So nobody leaves unnoticed.
//!
//! `cargo run -p weald-process --example chat`

use std::{collections::BTreeMap, error::Error, fmt};

use weald_kernel::Runtime;
use weald_process::{
    self as process, Answer, Broadcast, ChildSpec, Down, Estate, ExitReason, Group, Handover,
    Inbox, Name, Pid, Process, ProcessId, Reply, Server, ServerMessage, ServerRef, ServerScope,
    Slow, Step, Strategy, Supervisor, monitor,
};

static ROOM: Group<News> = Group::new("chat room");
static PRESENCE: Name<ServerMessage<Presence>> = Name::new("presence");

/// What everyone in the room hears.
enum News {
    Entered(&'static str),
    Said(&'static str, &'static str),
    Left(&'static str),
}

fn tell(news: News) {
    let sent = ROOM.broadcast(news);
    sent.expect("there is no other group of this name");
}

/// What a user's process receives.
enum ToUser {
    /// To be said. Answered when all have been sent it.
    Say(&'static str, Reply<()>),
    Heard(Broadcast<News>),
    Leave,
}

/// A user, who returns what was heard.
async fn user(mut inbox: Inbox<ToUser>, name: &'static str) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        match inbox.receive().await {
            ToUser::Say(text, reply) => {
                tell(News::Said(name, text));
                let _gone = reply.send(());
            }
            ToUser::Heard(news) => heard.push(news.to_string()),
            ToUser::Leave => return heard,
        }
    }
}

type User = Process<ToUser, Vec<String>>;

/// A new user in the room. One who does not listen is thrown out, before unheard news fill the memory.
async fn enter(name: &'static str) -> Result<User, Box<dyn Error>> {
    let user = process::spawn(move |inbox| user(inbox, name))?;
    let deaf = Slow::Exit(1_000, ExitReason::custom("it does not listen"));
    ROOM.join(user.pid(), deaf, ToUser::Heard)?;
    let presence = ServerRef::of(PRESENCE.registered().await?);
    match presence.request(Enter(name, user.pid().clone())).await? {
        true => Ok(user),
        false => {
            user.kill();
            Err(format!("there is another {name} in the room").into())
        }
    }
}

/// Knows who is there.
struct Presence(Estate<Users>);

type Users = BTreeMap<ProcessId, (&'static str, Pid<ToUser>)>;

/// Answered with whether the name was free.
struct Enter(&'static str, Pid<ToUser>);
struct WhoIsThere;

impl Server for Presence {
    type Info = Down;

    async fn begin(&mut self, scope: &mut ServerScope<Presence>) -> Step {
        for (_name, pid) in self.0.values() {
            scope.monitor(pid, |down| down);
        }
        // Last: the notices of those who have left are before all requests.
        let registered = PRESENCE.register(scope.server().pid());
        registered.expect("its predecessor has ended");
        Step::Receive
    }

    async fn info(&mut self, down: Down, _: &mut ServerScope<Presence>) -> Step {
        if let Some((name, _pid)) = down.process.and_then(|id| self.0.remove(&id)) {
            tell(News::Left(name));
        }
        Step::Receive
    }
}

impl Answer<Enter> for Presence {
    type Value = bool;

    async fn answer(
        &mut self,
        Enter(name, pid): Enter,
        reply: Reply<bool>,
        scope: &mut ServerScope<Presence>,
    ) -> Step {
        let is_free = self.0.values().all(|(other, _)| *other != name);
        if is_free {
            scope.monitor(&pid, |down| down);
            self.0.insert(pid.id(), (name, pid));
            tell(News::Entered(name));
        }
        let _gone = reply.send(is_free);
        Step::Receive
    }
}

impl Answer<WhoIsThere> for Presence {
    type Value = Vec<&'static str>;

    async fn answer(
        &mut self,
        _: WhoIsThere,
        reply: Reply<Vec<&'static str>>,
        _: &mut ServerScope<Presence>,
    ) -> Step {
        let _gone = reply.send(self.0.values().map(|(name, _)| *name).collect());
        Step::Receive
    }
}

/// An evening, as Ada hears it.
async fn run() -> Result<Vec<String>, Box<dyn Error>> {
    let users = Handover::new();
    let presence = ChildSpec::server("presence", move || {
        Presence(users.claim(Users::new).expect("its predecessor has ended"))
    });
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(presence)
        .start()
        .await?;

    let (ada, bob, cleo) = (
        enter("Ada").await?,
        enter("Bob").await?,
        enter("Cleo").await?,
    );
    let refused = enter("Bob").await;
    assert!(refused.is_err(), "there is a Bob already");
    let say = |user: &User, text| user.pid().call(move |reply| ToUser::Say(text, reply));
    say(&ada, "Is anybody here?").await?;
    say(&bob, "I am.").await?;

    // Bob loses his line. Then the presence is killed, and Cleo leaves while there is none, or a new one.
    let presence = PRESENCE.whereis()?;
    let downs = [monitor(&bob), monitor(&presence)];
    bob.kill();
    presence.kill();
    cleo.pid().send(ToUser::Leave);
    for down in downs {
        down.await;
    }
    cleo.await?;
    let presence = ServerRef::of(PRESENCE.registered().await?);
    assert_eq!(presence.request(WhoIsThere).await?, ["Ada"]);

    ada.pid().send(ToUser::Leave);
    let heard = ada.await?;
    supervisor.stop().await;
    Ok(heard)
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Entered(name) => write!(f, "{name} enters."),
            News::Said(name, text) => write!(f, "{name}: {text}"),
            News::Left(name) => write!(f, "{name} has left."),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in Runtime::builder().build()?.block_on(run())? {
        println!("{line}");
    }
    Ok(())
}

#[test]
fn nobody_leaves_unnoticed() {
    let evening = [
        "Ada enters.",
        "Bob enters.",
        "Cleo enters.",
        "Ada: Is anybody here?",
        "Bob: I am.",
        "Bob has left.",
        "Cleo has left.",
    ];
    for seed in 0..200 {
        let mut heard = Runtime::test(seed).block_on(run()).unwrap();
        // Two that leave may be noticed in any order.
        heard[5..].sort();
        assert_eq!(heard, evening, "seed {seed}");
    }
}
