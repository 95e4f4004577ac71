// The rival C++: processes are threads of std::thread, mailboxes are a mutex, a condition variable
// and a deque.
//
// Invariants: the program is bound to as many processors as there are workers; metrics go to stdout
// with exit code 0, an error is one sentence on stderr with exit code 1, or 2 for bad usage. Threads are parked
// before the clock starts, and the program ends without waiting for them.
#include <sched.h>

#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "mailbox.hpp"
#include "measure.hpp"

namespace {

using Numbers = Mailbox<std::size_t>;

struct Die {};

// A thread and its mailbox; the mailbox is on the heap, where the thread finds it.
struct Waiter {
    std::unique_ptr<Mailbox<Die>> mailbox;
    std::thread thread;
};

// How long a thread takes to start and to end, and its memory while it waits.
[[noreturn]] void spawn(std::size_t n) {
    Gate started(n), ended(n);
    std::vector<Waiter> handles(n);
    at(0);
    const auto spawning = Clock::now();
    for (Waiter& waiter : handles) {
        waiter.mailbox = std::make_unique<Mailbox<Die>>();
        waiter.thread = start_thread([&started, &ended, &mailbox = *waiter.mailbox] {
            started.count();
            mailbox.receive();
            ended.count();
        });
    }
    started.wait();
    const auto spawned = Clock::now();
    at(n);

    const auto ending = Clock::now();
    for (Waiter& waiter : handles) {
        waiter.mailbox->send({});
    }
    ended.wait();
    for (Waiter& waiter : handles) {
        waiter.thread.join();
    }
    const auto gone = Clock::now();
    const auto threads = static_cast<double>(n);
    print_metrics({{"ns_per_spawn", nanoseconds(spawning, spawned) / threads},
                   {"ns_per_teardown", nanoseconds(ending, gone) / threads}});
}

// Passes tokens on; the number in a token is how many hops it has left.
[[noreturn]] void pass(Numbers& mailbox, Numbers& neighbour, Gate& arrived) {
    for (;;) {
        const std::size_t hops = mailbox.receive();
        if (hops == 0) {
            arrived.count();
        } else {
            neighbour.send(hops - 1);
        }
    }
}

// Tokens go round a ring of threads, each of which knows only its neighbour.
[[noreturn]] void ring(std::size_t n, std::size_t m, std::size_t tokens) {
    Gate started(n), arrived(tokens);
    const auto setup = Clock::now();
    std::vector<Numbers> mailboxes(n);
    // The ring is built backwards: the last thread is started first and gets the first one's
    // mailbox at the end.
    Mailbox<Numbers*> told;
    start_thread([&] {
        Numbers& first = *told.receive();
        started.count();
        pass(mailboxes[n - 1], first, arrived);
    }).detach();
    for (std::size_t i = n - 1; i-- > 0;) {
        start_thread([&, i] {
            started.count();
            pass(mailboxes[i], mailboxes[i + 1], arrived);
        }).detach();
    }
    told.send(&mailboxes[0]);
    started.wait();

    const auto running = Clock::now();
    for (std::size_t token = 0; token < tokens; ++token) {
        mailboxes[token * n / tokens].send(n * m);
    }
    arrived.wait();
    const auto end = Clock::now();
    const double laps = static_cast<double>(m) * static_cast<double>(tokens);
    const double hops = static_cast<double>(n) * laps;
    print_metrics({{"ns_per_hop", nanoseconds(running, end) / hops},
                   {"ms_with_setup", nanoseconds(setup, end) / 1e6}});
}

// One message; `Text` says whether the text is shared or owned.
template <typename Text>
struct Item {
    Text text;
    std::size_t number;
    std::size_t length;
    double share;
};

// One thread sends itself messages and then receives them all.
template <typename Text>
[[noreturn]] void mailbox(std::size_t k, const std::string& original) {
    Mailbox<Item<Text>> me;
    at(0);
    const auto sending = Clock::now();
    for (std::size_t i = 0; i < k; ++i) {
        me.send({Text(original), i, i + 1, static_cast<double>(i) * 0.5});
    }
    const auto sent = Clock::now();
    at(k);
    const auto receiving = Clock::now();
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) {
        const Item<Text> item = me.receive();
        sum += item.share + static_cast<double>(item.text.size() + item.number + item.length);
    }
    const auto received = Clock::now();
    if (sum < 0) {
        fail("A message is damaged.");
    }
    const auto messages = static_cast<double>(k);
    print_metrics({{"ns_per_send", nanoseconds(sending, sent) / messages},
                   {"ns_per_receive", nanoseconds(receiving, received) / messages}});
}

// Threads that work at the same time, and that leave when they have done so.
class Team {
public:
    // Room for this many that wait for the start; so many threads count themselves as started, and as done.
    Team(std::size_t starts, std::size_t started, std::size_t done)
        : starts_(starts), started_(started), done_(done) {}

    // Adds a thread that waits for the start and then does this work.
    template <class Work>
    void add(Work work) {
        start_thread([this, &start = starts_[added_++], work] {
            started_.count();
            start.receive();
            work();
        }).detach();
    }

    // Adds a thread that works as soon as a message comes.
    template <class Work>
    void add_waiting(Work work) {
        start_thread([this, work] {
            started_.count();
            work();
        }).detach();
    }

    // For a thread that has done its work.
    void done() { done_.count(); }

    // Starts all threads, does `begin`, and returns how long it took until the last one was done.
    template <class Begin>
    double run(Begin begin) {
        started_.wait();
        // Long enough for a thread that has counted itself started to reach its receive.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const auto clock = Clock::now();
        for (auto& start : starts_) {
            start.send(true);
        }
        begin();
        done_.wait();
        return nanoseconds(clock, Clock::now());
    }

private:
    std::vector<Mailbox<bool>> starts_;
    std::size_t added_ = 0;
    Gate started_, done_;
};

[[noreturn]] void print_per_message(double elapsed, std::size_t units, std::size_t messages) {
    const double total = static_cast<double>(units) * static_cast<double>(messages);
    print_metrics({{"ns_per_message", elapsed / total}});
}

// How many messages each will receive, found by running all the generators.
std::vector<std::size_t> expected_counts(std::size_t processes, std::size_t messages) {
    std::vector<std::size_t> counts(processes);
    for (std::size_t i = 0; i < processes; ++i) {
        Xorshift random(i);
        for (std::size_t sent = 0; sent < messages; ++sent) {
            ++counts[random.next_below(processes)];
        }
    }
    return counts;
}

// Threads send to pseudo-random others.
[[noreturn]] void many_to_many(std::size_t processes, std::size_t messages) {
    Team team(processes, processes, processes);
    const auto expected = expected_counts(processes, messages);
    std::vector<Numbers> everyone(processes);
    for (std::size_t i = 0; i < processes; ++i) {
        team.add([&, i] {
            Xorshift random(i);
            for (std::size_t number = 0; number < messages; ++number) {
                everyone[random.next_below(processes)].send(number);
            }
            for (std::size_t left = expected[i]; left > 0; --left) {
                everyone[i].receive();
            }
            team.done();
        });
    }
    print_per_message(team.run([] {}), processes, messages);
}

// Many senders, one receiver.
[[noreturn]] void fan_in(std::size_t senders, std::size_t messages) {
    Team team(senders, senders + 1, 1);
    Numbers receiver;
    team.add_waiting([&] {
        for (std::size_t left = senders * messages; left > 0; --left) {
            receiver.receive();
        }
        team.done();
    });
    for (std::size_t i = 0; i < senders; ++i) {
        team.add([&] {
            for (std::size_t number = 0; number < messages; ++number) {
                receiver.send(number);
            }
        });
    }
    print_per_message(team.run([] {}), senders, messages);
}

// Two threads send one small integer back and forth.
[[noreturn]] void ping_pong(std::size_t rounds) {
    Team team(0, 2, 1);
    Numbers ping, pong;
    team.add_waiting([&] {
        for (;;) {
            ping.send(pong.receive());
        }
    });
    team.add_waiting([&] {
        while (const std::size_t left = ping.receive()) {
            pong.send(left - 1);
        }
        team.done();
    });
    const double elapsed = team.run([&] { ping.send(rounds); });
    print_metrics({{"ns_per_round_trip", elapsed / static_cast<double>(rounds)}});
}

// Keeps the work of a thread from being optimised away.
volatile std::size_t used;

// Threads that sleep, which is what std::thread has for code that runs later.
[[noreturn]] void callbacks(std::size_t n, bool in_loop) {
    in_steps(n, [in_loop](std::size_t started, std::size_t size) {
        for (; started < size; ++started) {
            start_thread([index = started, in_loop] {
                do {
                    used = index;
                    std::this_thread::sleep_for(std::chrono::hours(1));
                } while (in_loop);
                used = index + index;
            }).detach();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    print_metrics({});
}

// Binds the program to the first `workers` of the processors that it may use.
void use_processors(std::size_t workers) {
    cpu_set_t allowed, chosen;
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        fail("The processors of this program cannot be read: run this on Linux.");
    }
    std::size_t found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < workers; ++cpu) {
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &chosen);
            ++found;
        }
    }
    if (found < workers || sched_setaffinity(0, sizeof chosen, &chosen) != 0) {
        fail("There are fewer processors than workers: give fewer workers.");
    }
}

void run(const std::string& workload, std::size_t workers) {
    use_processors(workers);
    if (workload == "spawn") {
        spawn(number("n"));
    } else if (workload == "ring") {
        if (number("tokens") > number("n")) {
            bad_usage("There are more tokens than processes: give tokens <= n.");
        }
        ring(number("n"), number("m"), number("tokens"));
    } else if (workload == "mailbox") {
        const std::string text(number("bytes"), 'x');
        first_of("payload", "shared", "fresh")
            ? mailbox<std::string_view>(number("k"), text)
            : mailbox<std::string>(number("k"), text);
    } else if (workload == "many-to-many") {
        many_to_many(number("processes"), number("messages"));
    } else if (workload == "fan-in") {
        fan_in(number("senders"), number("messages"));
    } else if (workload == "ping-pong") {
        ping_pong(number("rounds"));
    } else if (workload == "callbacks") {
        callbacks(number("n"), first_of("kind", "loop", "once"));
    }
}

}  // namespace

int main(int count, char** arguments) {
    return main_of(count, arguments, "std::thread (GCC " __VERSION__ ")", run);
}
