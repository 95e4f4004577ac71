// spawn, ring and mailbox.
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "mailbox.hpp"
#include "measure.hpp"
#include "workloads.hpp"

namespace {

struct Die {};

using Hops = Mailbox<std::size_t>;

// A thread and its mailbox; the mailbox is on the heap, where the thread finds it.
struct Waiter {
    std::unique_ptr<Mailbox<Die>> mailbox;
    std::thread thread;
};

// Passes tokens on; the number in a token is how many hops it has left.
[[noreturn]] void pass(Hops& mailbox, Hops& neighbour, Gate& arrived) {
    for (;;) {
        const std::size_t hops = mailbox.receive();
        if (hops == 0) {
            arrived.count();
        } else {
            neighbour.send(hops - 1);
        }
    }
}

// One message; `Text` says whether the text is shared or owned.
template <typename Text>
struct Item {
    Text text;
    std::size_t number;
    std::size_t length;
    double share;
};

template <typename Text>
[[noreturn]] void run_mailbox(std::size_t k, const std::string& original) {
    Mailbox<Item<Text>> me;
    const double rss_before = rss_bytes();
    const auto sending = Clock::now();
    for (std::size_t i = 0; i < k; ++i) {
        me.send({Text(original), i, i + 1, static_cast<double>(i) * 0.5});
    }
    const auto sent = Clock::now();
    const double grown = rss_bytes() - rss_before;
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
                   {"ns_per_receive", nanoseconds(receiving, received) / messages},
                   {"bytes_per_message", grown / messages}});
}

}  // namespace

void spawn(std::size_t n) {
    Gate started(n), ended(n);
    std::vector<Waiter> handles(n);
    const double rss_before = rss_bytes();
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
    const double grown = rss_bytes() - rss_before;

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
                   {"ns_per_teardown", nanoseconds(ending, gone) / threads},
                   {"bytes_per_process", grown / threads}});
}

void ring(std::size_t n, std::size_t m, std::size_t tokens) {
    Gate started(n), arrived(tokens);
    const auto setup = Clock::now();
    std::vector<Mailbox<std::size_t>> mailboxes(n);
    // The ring is built backwards: the last thread is started first and gets the first one's
    // mailbox at the end.
    Mailbox<Mailbox<std::size_t>*> told;
    start_thread([&] {
        Mailbox<std::size_t>& first = *told.receive();
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

void mailbox_shared(std::size_t k, std::size_t bytes) {
    run_mailbox<std::string_view>(k, std::string(bytes, 'x'));
}

void mailbox_fresh(std::size_t k, std::size_t bytes) {
    run_mailbox<std::string>(k, std::string(bytes, 'x'));
}
