// Measures one program on one system, in turns with its serial forms: the same rounds and figures as
// in lab/src/programs/measure.rs.
//
// A system is a way to fork that also has a static `enter(work)`, which calls `work` where forks are
// possible. Every answer is checked, those of serial runs too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "programs.hpp"

constexpr double one_run = 1e6, long_enough = 5e8, too_long = 5e9;
constexpr std::size_t least_rounds = 5;

// How long everything sleeps before each run.
inline std::chrono::microseconds pause_length{0};

// Whether rounds that began at that time are enough; only slow programs get fewer.
inline bool are_enough(std::size_t rounds, Clock::time_point begin) {
    const double elapsed = nanoseconds(begin, Clock::now());
    return (rounds >= least_rounds && elapsed >= long_enough) ||
           (rounds > 0 && elapsed >= too_long);
}

// The mean nanoseconds of this many runs.
template <class Fork, class Program>
double timed(Program& program, std::size_t repeats) {
    double total = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        program.reset();
        if (pause_length.count() > 0) {
            std::this_thread::sleep_for(pause_length);
        }
        const auto begin = Clock::now();
        // Otherwise the compiler would move independent work out of the loop.
        asm volatile("" : : "r"(&program) : "memory");
        program.template run<Fork>();
        total += nanoseconds(begin, Clock::now());
        program.check();
    }
    return total / static_cast<double>(repeats);
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double median_ratio(const std::vector<double>& above, const std::vector<double>& below) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < above.size(); ++i) {
        ratios.push_back(above[i] / below[i]);
    }
    return median(ratios);
}

template <class System, class Program>
[[noreturn]] void measure(Program program, std::size_t workers, bool forks) {
    Counted::forks = 0;
    program.reset();
    program.template run<Counted>();
    program.check();
    program.keep_answer();
    const double once = timed<Plain>(program, 1);
    const auto repeats = std::max<std::size_t>(1, static_cast<std::size_t>(one_run / (once + 1)));

    std::vector<double> serial, outlined, forking, beyond;
    const auto fork_once = [&](std::size_t times) {
        double time = 0;
        System::enter([&] { time = timed<System>(program, times); });
        return time;
    };
    if (forks) {
        // The threads and stacks that a first run starts are not part of the cost of a fork.
        fork_once(1);
    }
    const auto begin = Clock::now();
    while (!are_enough(serial.size(), begin)) {
        const bool forks_first = serial.size() % 2 == 1;
        if (forks && forks_first) {
            forking.push_back(fork_once(repeats));
        }
        serial.push_back(timed<Plain>(program, repeats));
        outlined.push_back(timed<Outlined>(program, repeats));
        if (forks && !forks_first) {
            forking.push_back(fork_once(repeats));
        }
    }
    const double ms = 1e-6;
    if (!forks) {
        print_metrics({{"ms", ms * median(serial)}, {"ms_outlined", ms * median(outlined)}});
    }
    for (std::size_t i = 0; i < serial.size(); ++i) {
        beyond.push_back(static_cast<double>(workers) * forking[i] - serial[i]);
    }
    std::printf("ms %.3f\nspeedup %.3f\n", ms * median(forking), median_ratio(serial, forking));
    if (!program.run_serial_part() && Counted::forks > 0) {
        const auto forked = static_cast<double>(Counted::forks);
        std::printf("ns_per_fork %.3f\n", median(beyond) / forked);
    }
    print_metrics({{"speedup_outlined", median_ratio(outlined, forking)},
                   {"ms_serial", ms * median(serial)},
                   {"ms_outlined", ms * median(outlined)}});
}

// The workloads that fork, with their keys.
inline const std::map<std::string, std::string> fork_workloads = {
    {"fib", "n forking pause_us"},
    {"quicksort", "n data forking pause_us"},
    {"nqueens", "n forking pause_us"},
    {"tree-search", "n depth shape forking pause_us"}};

// Runs the workload if it is one that forks. `start` starts the system with this many workers.
template <class System, class Start>
void run_forks(const std::string& workload, const Keys& keys, std::size_t workers, Start&& start) {
    const auto run = [&](auto program) {
        const bool forks = keys.first_of("forking", "yes", "never");
        pause_length = std::chrono::microseconds(keys.number_or("pause_us", 0));
        start(workers);
        measure<System>(std::move(program), workers, forks);
    };
    if (workload == "fib") {
        run(Fib(keys.number("n")));
    } else if (workload == "quicksort") {
        run(Quicksort(keys.number("n"), keys.first_of("data", "random", "seed")));
    } else if (workload == "nqueens") {
        run(Queens(keys.number("n")));
    } else if (workload == "tree-search") {
        const bool random = keys.first_of("shape", "random", "left");
        run(Tree(keys.number("n"), keys.number("depth"), random));
    }
}
