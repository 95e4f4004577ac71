// The rival C++: processes are threads of std::thread, mailboxes are a mutex, a condition variable
// and a deque.
//
// Invariants: the program is bound to as many processors as there are workers; metrics go to stdout
// with exit code 0, an error is one sentence on stderr with exit code 1, or 2 for bad usage.
#include <sched.h>

#include <cstdio>
#include <string>

#include "keys.hpp"
#include "measure.hpp"
#include "workloads.hpp"

namespace {

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

void run(const std::string& workload, Keys& keys, std::size_t workers) {
    const auto begin = [&] {
        keys.finish();
        use_processors(workers);
    };
    if (workload == "spawn") {
        const auto n = keys.number("n");
        begin();
        spawn(n);
    } else if (workload == "ring") {
        const auto n = keys.number("n"), m = keys.number("m"), tokens = keys.number("tokens");
        if (tokens > n) {
            bad_usage("There are more tokens than processes: give tokens <= n.");
        }
        begin();
        ring(n, m, tokens);
    } else if (workload == "mailbox") {
        const auto k = keys.number("k"), bytes = keys.number("bytes");
        const auto payload = keys.take("payload");
        if (payload != "shared" && payload != "fresh") {
            bad_usage("The key `payload` takes `shared` or `fresh`.");
        }
        begin();
        payload == "shared" ? mailbox_shared(k, bytes) : mailbox_fresh(k, bytes);
    } else if (workload == "many-to-many") {
        const auto processes = keys.number("processes"), messages = keys.number("messages");
        begin();
        many_to_many(processes, messages);
    } else if (workload == "fan-in") {
        const auto senders = keys.number("senders"), messages = keys.number("messages");
        begin();
        fan_in(senders, messages);
    } else if (workload == "ping-pong") {
        const auto rounds = keys.number("rounds");
        begin();
        ping_pong(rounds);
    } else if (workload == "callbacks") {
        const auto n = keys.number("n");
        const auto kind = keys.take("kind");
        if (kind != "once" && kind != "loop") {
            bad_usage("The key `kind` takes `once` or `loop`.");
        }
        begin();
        callbacks(n, kind == "loop");
    }
    bad_usage("The workload `" + workload + "` is unknown: see the README.");
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        bad_usage("No workload is given: call it as WORKLOAD key=value ..., or with --version.");
    }
    const std::string workload = arguments[1];
    if (workload == "--version") {
        std::printf("std::thread (GCC %s)\n", __VERSION__);
        return 0;
    }
    Keys keys(count - 2, arguments + 2);
    const std::size_t workers = keys.number("workers");
    run(workload, keys, workers);
}
