// The rival MassiveThreads: a user thread for each first half, which runs at once, so what other workers
// can take is the rest of the caller. Also measures what its threads cost by themselves. The same program, with the
// library of Weald that has the same functions, is `weald-c`.
#include <myth/myth.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "forks.hpp"

#ifndef RIVAL
#define RIVAL "MassiveThreads"
#endif

namespace {

struct MassiveThreads {
    template <class A, class B>
    static void join(A&& a, B&& b) {
        const myth_thread_t first = myth_create(call<std::remove_reference_t<A>>, &a);
        b();
        myth_join(first, nullptr);
    }

    // The thread that starts the library becomes one of its threads.
    template <class Work>
    static void enter(Work&& work) {
        work();
    }

private:
    template <class A>
    static void* call(void* half) {
        (*static_cast<A*>(half))();
        return nullptr;
    }
};

void start(std::size_t workers) {
    setenv("MYTH_NUM_WORKERS", std::to_string(workers).c_str(), 1);
    myth_init();
}

void* as_result(std::size_t number) { return reinterpret_cast<void*>(number); }

void join_with(myth_thread_t thread, std::size_t wanted) {
    void* result = nullptr;
    if (myth_join(thread, &result) != 0 || result != as_result(wanted)) {
        fail("A thread returned a wrong number.");
    }
}

void* give_back(void* argument) { return argument; }

[[noreturn]] void create_join(std::size_t n) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < n; ++i) {
        join_with(myth_create(give_back, as_result(i)), i);
    }
    print_metrics({{"ns", nanoseconds(begin, Clock::now()) / static_cast<double>(n)}});
}

[[noreturn]] void create_all(std::size_t n) {
    std::vector<myth_thread_t> threads(n);
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < n; ++i) {
        threads[i] = myth_create(give_back, as_result(i));
    }
    for (std::size_t i = 0; i < n; ++i) {
        join_with(threads[i], i);
    }
    print_metrics({{"ns", nanoseconds(begin, Clock::now()) / static_cast<double>(n)}});
}

// Where threads wait until they are released, and where their creator waits for them.
class Gate {
public:
    Gate() {
        myth_mutex_init(&mutex_, nullptr);
        myth_cond_init(&arrival_, nullptr);
        myth_cond_init(&opening_, nullptr);
    }

    void pass() {
        myth_mutex_lock(&mutex_);
        if (++arrived_ == awaited_) {
            myth_cond_signal(&arrival_);
        }
        while (!open_) {
            myth_cond_wait(&opening_, &mutex_);
        }
        myth_mutex_unlock(&mutex_);
    }

    void wait_for(std::size_t threads) {
        myth_mutex_lock(&mutex_);
        awaited_ = threads;
        while (arrived_ < threads) {
            myth_cond_wait(&arrival_, &mutex_);
        }
        myth_mutex_unlock(&mutex_);
    }

    void open() {
        myth_mutex_lock(&mutex_);
        open_ = true;
        myth_cond_broadcast(&opening_);
        myth_mutex_unlock(&mutex_);
    }

private:
    myth_mutex_t mutex_;
    myth_cond_t arrival_, opening_;
    std::size_t arrived_ = 0, awaited_ = 0;
    bool open_ = false;
};

void* pass(void* gate) {
    static_cast<Gate*>(gate)->pass();
    return nullptr;
}

[[noreturn]] void parked(std::size_t n) {
    std::vector<myth_thread_t> threads(n);
    Gate gate;
    double total = 0;
    in_steps(n, [&](std::size_t made, std::size_t size) {
        const auto begin = Clock::now();
        for (; made < size; ++made) {
            threads[made] = myth_create(pass, &gate);
        }
        gate.wait_for(size);
        total += nanoseconds(begin, Clock::now());
    });
    gate.open();
    for (const myth_thread_t thread : threads) {
        join_with(thread, 0);
    }
    print_metrics({{"ns", total / static_cast<double>(n)}});
}

// The work of one of several threads that are parked before the clock starts.
struct Unit {
    Gate* gate;
    void (*work)(void* shared, std::size_t unit, std::size_t rounds);
    void* shared;
    std::size_t unit, rounds;
};

void* run_unit(void* argument) {
    const Unit& unit = *static_cast<Unit*>(argument);
    unit.gate->pass();
    unit.work(unit.shared, unit.unit, unit.rounds);
    return nullptr;
}

// Nanoseconds that this many threads take that are released together.
double together(std::size_t units, const Unit& model) {
    Gate gate;
    std::vector<Unit> work(units, model);
    std::vector<myth_thread_t> threads(units);
    for (std::size_t i = 0; i < units; ++i) {
        work[i].gate = &gate;
        work[i].unit = i;
        threads[i] = myth_create(run_unit, &work[i]);
    }
    gate.wait_for(units);
    const auto begin = Clock::now();
    gate.open();
    for (const myth_thread_t thread : threads) {
        join_with(thread, 0);
    }
    return nanoseconds(begin, Clock::now());
}

void print_ns(double elapsed, std::size_t count) {
    print_metrics({{"ns", elapsed / static_cast<double>(count)}});
}

void give_way(void*, std::size_t, std::size_t rounds) {
    for (std::size_t i = 0; i < rounds; ++i) {
        myth_yield_ex(myth_yield_option_local_only);
    }
}

struct Counter {
    myth_mutex_t mutex;
    std::size_t count = 0;
};

void lock_often(void* shared, std::size_t, std::size_t rounds) {
    Counter& counter = *static_cast<Counter*>(shared);
    for (std::size_t i = 0; i < rounds; ++i) {
        myth_mutex_lock(&counter.mutex);
        ++counter.count;
        myth_mutex_unlock(&counter.mutex);
    }
}

void lock(std::size_t units, std::size_t rounds) {
    Counter counter;
    myth_mutex_init(&counter.mutex, nullptr);
    const double elapsed = together(units, {nullptr, lock_often, &counter, 0, rounds});
    if (counter.count != units * rounds) {
        fail("The lock let two in at once: the count is wrong.");
    }
    print_ns(elapsed, units * rounds);
}

struct Meeting {
    myth_barrier_t barrier;
    std::atomic<std::size_t> led = 0;
};

void meet_often(void* shared, std::size_t, std::size_t rounds) {
    Meeting& meeting = *static_cast<Meeting*>(shared);
    std::size_t led = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
        led += myth_barrier_wait(&meeting.barrier) != 0;
    }
    meeting.led += led;
}

void meet(std::size_t units, std::size_t rounds) {
    Meeting meeting;
    myth_barrier_init(&meeting.barrier, nullptr, static_cast<unsigned>(units));
    const double elapsed = together(units, {nullptr, meet_often, &meeting, 0, rounds});
    if (meeting.led != rounds) {
        fail("A round of the barrier did not have exactly one leader.");
    }
    print_ns(elapsed, rounds);
}

struct Turn {
    myth_mutex_t mutex;
    myth_cond_t changed;
    std::size_t of = 0;
};

void take_turns(void* shared, std::size_t unit, std::size_t rounds) {
    Turn& turn = *static_cast<Turn*>(shared);
    myth_mutex_lock(&turn.mutex);
    for (std::size_t i = 0; i < rounds; ++i) {
        while (turn.of != unit) {
            myth_cond_wait(&turn.changed, &turn.mutex);
        }
        turn.of = 1 - unit;
        myth_cond_signal(&turn.changed);
    }
    myth_mutex_unlock(&turn.mutex);
}

void condvar(std::size_t rounds) {
    Turn turn;
    myth_mutex_init(&turn.mutex, nullptr);
    myth_cond_init(&turn.changed, nullptr);
    print_ns(together(2, {nullptr, take_turns, &turn, 0, rounds}), rounds);
}

void run_threads(std::size_t workers) {
    const std::string what = text("what");
    const std::size_t n = number("n");
    const bool many = what == "lock-contended" || what == "barrier";
    const std::size_t units = many ? number("threads") : 1;
    start(workers);
    if (what == "create-join") {
        create_join(n);
    } else if (what == "create-all") {
        create_all(n);
    } else if (what == "parked") {
        parked(n);
    } else if (what == "yield") {
        print_ns(together(2, {nullptr, give_way, nullptr, 0, n}), 2 * n);
    } else if (what == "lock" || what == "lock-contended") {
        lock(units, n);
    } else if (what == "barrier") {
        meet(units, n);
    } else if (what == "condvar") {
        condvar(n);
    }
    bad_usage("The key `what` takes one of the words in the README.");
}

}  // namespace

int main(int count, char** arguments) {
    return main_of(count, arguments, RIVAL " (GCC " __VERSION__ ")",
                   [](const std::string& workload, std::size_t workers) {
                       if (workload == "thread") {
                           run_threads(workers);
                       }
                       run_forks<MassiveThreads>(workload, workers, start);
                   });
}
