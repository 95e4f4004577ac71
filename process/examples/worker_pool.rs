//! A worker pool: a number of workers, each of which does one job at a time, and a queue of the jobs that wait for one.
//!
//! A caller waits for its answer alone. Its reply goes with the job from the pool to a worker, so no table of open jobs
//! is needed: a worker that crashes drops the reply of its job, and the caller is told at once why. The supervisor
//! starts the worker again, and a worker asks for work itself, so the pool need not know who the workers are.
//!
//! `cargo run -p weald-process --example worker_pool`

use std::{collections::VecDeque, error::Error, time::Duration};

use weald_kernel::{JoinSet, Runtime, yield_now};
use weald_process::{
    Accept, Answer, CallError, ChildSpec, Inbox, Name, Pid, Reply, Server, ServerMessage,
    ServerRef, ServerScope, Step, Strategy, Supervisor,
};

const WORKERS: usize = 4;
const SECOND: Duration = Duration::from_secs(1);

static POOL: Name<ServerMessage<Pool>> = Name::new("pool");

/// A number whose smallest factor is wanted.
struct Job {
    number: u64,
    reply: Reply<u64>,
}

/// Does one job after another.
async fn work(mut inbox: Inbox<Job>) {
    let pool = ServerRef::of(POOL.whereis().expect("it starts before its workers"));
    loop {
        pool.cast(Free(inbox.pid()));
        let Job { number, reply } = inbox.receive().await;
        let factor = smallest_factor(number).await;
        let _unheard = reply.send(factor);
    }
}

/// Gives way now and then: a worker that computes for long should not hold its OS thread.
async fn smallest_factor(number: u64) -> u64 {
    assert!(number > 1, "{number} has no factors");
    for candidate in 2..=number.isqrt() {
        if number.is_multiple_of(candidate) {
            return candidate;
        }
        if candidate % 1_000 == 0 {
            yield_now().await;
        }
    }
    number
}

/// Brings jobs and free workers together. One of the two queues is empty.
#[derive(Default)]
struct Pool {
    jobs: VecDeque<Job>,
    workers: VecDeque<Pid<Job>>,
}

/// The request for the smallest factor of a number.
struct Factor(u64);

/// This worker has nothing to do.
struct Free(Pid<Job>);

impl Server for Pool {
    type Info = ();

    async fn begin(&mut self, scope: &mut ServerScope<Pool>) -> Step {
        let registered = POOL.register(scope.server().pid());
        registered.expect("its predecessor has ended");
        Step::Receive
    }
}

impl Answer<Factor> for Pool {
    type Value = u64;

    async fn answer(
        &mut self,
        Factor(number): Factor,
        reply: Reply<u64>,
        _: &mut ServerScope<Pool>,
    ) -> Step {
        self.jobs.push_back(Job { number, reply });
        self.hand_out();
        Step::Receive
    }
}

impl Accept<Free> for Pool {
    async fn accept(&mut self, Free(worker): Free, _: &mut ServerScope<Pool>) -> Step {
        self.workers.push_back(worker);
        self.hand_out();
        Step::Receive
    }
}

impl Pool {
    fn hand_out(&mut self) {
        while !self.jobs.is_empty()
            && let Some(worker) = self.workers.pop_front()
        {
            let job = self.jobs.pop_front().expect("there is one");
            if !job.reply.is_wanted() {
                // Its caller waits no longer.
                self.workers.push_front(worker);
            } else if let Err(refused) = worker.try_send(job) {
                // The worker has ended; its successor asks for work.
                self.jobs.push_front(refused.into_message());
            }
        }
    }
}

/// Answers and failures, by number.
type Results = Vec<(u64, Result<u64, CallError>)>;

/// Many callers at once; some of their jobs crash the workers.
async fn run() -> Result<Results, Box<dyn Error>> {
    // A worker that crashes is started again alone. If the pool ends, the workers are started again behind it.
    let workers = || {
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(100, SECOND);
        (0..WORKERS).fold(supervisor, |supervisor, number| {
            supervisor.child(ChildSpec::process(format!("worker {number}"), work))
        })
    };
    let supervisor = Supervisor::new(Strategy::RestForOne)
        .child(ChildSpec::server("pool", Pool::default))
        .child(ChildSpec::supervisor("workers", workers))
        .start()
        .await?;
    let pool = ServerRef::of(POOL.whereis()?);
    let mut callers = JoinSet::new();
    for number in (0..20).chain([4_294_967_297, 600_851_475_143]) {
        let pool = pool.clone();
        callers.spawn(async move { (number, pool.request(Factor(number)).await) });
    }
    let mut results = Results::new();
    while let Some(result) = callers.join_next().await {
        results.push(result?);
    }
    supervisor.stop().await;
    results.sort_by_key(|(number, _)| *number);
    Ok(results)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (number, result) in Runtime::builder().build()?.block_on(run())? {
        match result {
            Ok(factor) if factor == number => println!("{number} is prime"),
            Ok(factor) => println!("{number} is divisible by {factor}"),
            Err(error) => println!("{number}: {error}"),
        }
    }
    Ok(())
}

#[test]
fn each_caller_has_an_answer_or_the_reason_why_there_is_none() {
    for seed in 0..30 {
        let results = Runtime::test(seed).block_on(run()).unwrap();
        assert_eq!(results.len(), 22);
        for (number, result) in results {
            match result {
                Ok(factor) => assert!(
                    factor > 1 && number.is_multiple_of(factor),
                    "{factor} of {number}"
                ),
                Err(CallError::Died(reason)) => {
                    assert!(reason.to_string().contains("has no factors"), "{reason}");
                    assert!(number < 2, "{number}");
                }
                Err(error) => panic!("{number}: {error}"),
            }
        }
    }
}
