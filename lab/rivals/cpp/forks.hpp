// Runs one program on one system, and its serial forms, as often as the starter asks.
//
// A system is a way to fork that also has a static `enter(work)`, which calls `work` where forks are
// possible. Every answer is checked, those of serial runs too.
#pragma once

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

#include "measure.hpp"
#include "programs.hpp"

// How long everything sleeps before each run.
inline std::chrono::microseconds pause_length{0};

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

// Times what the starter asks for: it decides on the rounds, as for lab/src/programs/measure.rs.
template <class System, class Program>
[[noreturn]] void measure(Program program) {
    Counted::forks = 0;
    program.reset();
    program.template run<Counted>();
    program.check();
    program.keep_answer();
    std::printf("forks %zu outlined\n", program.run_serial_part() ? 0 : std::size_t(Counted::forks));
    std::fflush(stdout);
    std::size_t repeats = 0;
    for (std::string form; std::cin >> form >> repeats;) {
        double time = 0;
        if (form == "forking") {
            System::enter([&] { time = timed<System>(program, repeats); });
        } else {
            time = form == "serial" ? timed<Plain>(program, repeats) : timed<Outlined>(program, repeats);
        }
        std::printf("%.3f\n", time);
        std::fflush(stdout);
    }
    std::_Exit(0);
}

// Runs the workload if it is one that forks. `start` starts the system with this many workers.
template <class System, class Start>
void run_forks(const std::string& workload, std::size_t workers, Start&& start) {
    const auto run = [&](auto program) {
        pause_length = std::chrono::microseconds(number("pause_us"));
        start(workers);
        measure<System>(std::move(program));
    };
    if (workload == "fib") {
        run(Fib(number("n")));
    } else if (workload == "quicksort") {
        run(Quicksort(number("n"), first_of("data", "random", "seed")));
    } else if (workload == "nqueens") {
        run(Queens(number("n")));
    } else if (workload == "tree-search") {
        const bool random = first_of("shape", "random", "left");
        run(Tree(number("n"), number("depth"), random));
    }
}
