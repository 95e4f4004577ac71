// many-to-many, fan-in and ping-pong: threads that are parked before the clock starts exchange
// small integers.
#include <thread>
#include <vector>

#include "mailbox.hpp"
#include "measure.hpp"
#include "workloads.hpp"

namespace {

// Long enough for a thread that has counted itself started to reach its receive.
constexpr std::chrono::milliseconds settle{50};

struct Start {};

// Starts the clock and then every thread, after all have parked.
Clock::time_point start_all(std::vector<Mailbox<Start>>& starts) {
    std::this_thread::sleep_for(settle);
    const auto clock = Clock::now();
    for (auto& start : starts) {
        start.send({});
    }
    return clock;
}

[[noreturn]] void print_per_message(Clock::time_point from, std::size_t units,
                                    std::size_t messages) {
    const double total = static_cast<double>(units) * static_cast<double>(messages);
    print_metrics({{"ns_per_message", nanoseconds(from, Clock::now()) / total}});
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

}  // namespace

void many_to_many(std::size_t processes, std::size_t messages) {
    Gate started(processes), done(processes);
    const auto expected = expected_counts(processes, messages);
    std::vector<Mailbox<std::size_t>> everyone(processes);
    std::vector<Mailbox<Start>> starts(processes);
    for (std::size_t i = 0; i < processes; ++i) {
        start_thread([&, i] {
            started.count();
            starts[i].receive();
            Xorshift random(i);
            for (std::size_t number = 0; number < messages; ++number) {
                everyone[random.next_below(processes)].send(number);
            }
            for (std::size_t left = expected[i]; left > 0; --left) {
                everyone[i].receive();
            }
            done.count();
        }).detach();
    }
    started.wait();
    const auto clock = start_all(starts);
    done.wait();
    print_per_message(clock, processes, messages);
}

void fan_in(std::size_t senders, std::size_t messages) {
    Gate started(senders + 1), done(1);
    Mailbox<std::size_t> receiver;
    std::vector<Mailbox<Start>> starts(senders);
    start_thread([&] {
        started.count();
        for (std::size_t left = senders * messages; left > 0; --left) {
            receiver.receive();
        }
        done.count();
    }).detach();
    for (auto& start : starts) {
        start_thread([&] {
            started.count();
            start.receive();
            for (std::size_t number = 0; number < messages; ++number) {
                receiver.send(number);
            }
        }).detach();
    }
    started.wait();
    const auto clock = start_all(starts);
    done.wait();
    print_per_message(clock, senders, messages);
}

void ping_pong(std::size_t rounds) {
    Gate started(2), done(1);
    Mailbox<std::size_t> ping, pong;
    start_thread([&] {
        started.count();
        for (;;) {
            ping.send(pong.receive());
        }
    }).detach();
    start_thread([&] {
        started.count();
        while (const std::size_t left = ping.receive()) {
            pong.send(left - 1);
        }
        done.count();
    }).detach();
    started.wait();
    std::this_thread::sleep_for(settle);
    const auto clock = Clock::now();
    ping.send(rounds);
    done.wait();
    const double elapsed = nanoseconds(clock, Clock::now());
    print_metrics({{"ns_per_round_trip", elapsed / static_cast<double>(rounds)}});
}
