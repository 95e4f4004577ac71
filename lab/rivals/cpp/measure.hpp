// What the workloads measure with: the keys, the clock, sizes, metrics, and the traffic pattern.
//
// rival-start (common/src/start.rs) checks the keys and puts them into the environment, and says what the program may
// ask it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using Clock = std::chrono::steady_clock;

// One line of the output.
using Metric = std::pair<const char*, double>;

// Prints the metrics and ends the program without waiting for threads that are still alive.
[[noreturn]] inline void print_metrics(std::initializer_list<Metric> metrics) {
    for (const auto& [name, value] : metrics) {
        std::printf("%s %.3f\n", name, value);
    }
    std::fflush(stdout);
    std::_Exit(0);
}

// Ends the program with one sentence: because it cannot do what was asked, or because it was called
// wrongly.
[[noreturn]] inline void fail(const std::string& sentence, int code = 1) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::_Exit(code);
}

[[noreturn]] inline void bad_usage(const std::string& sentence) { fail(sentence, 2); }

// Tells the starter that this program holds so many things, and waits while it reads the memory.
inline void at(std::size_t size) {
    std::printf("at %zu\n", size);
    std::fflush(stdout);
    std::getchar();
}

// Nanoseconds from one point to another.
inline double nanoseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::nano>(to - from).count();
}

// The generator xorshift64 (shifts 13, 7, 17); the process with an index is seeded with the index +
// 1.
class Xorshift {
public:
    explicit Xorshift(std::size_t index) : state_(index + 1) {}

    std::size_t next_below(std::size_t limit) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ % limit;
    }

private:
    std::uint64_t state_;
};

// Has `grow` make more things, from one number to another, in eight steps up to `n`; the starter draws the line through
// their memory.
template <class Grow>
void in_steps(std::size_t n, Grow grow) {
    std::size_t made = 0;
    for (std::size_t step = 0; step <= 8; ++step) {
        const std::size_t size = n * step / 8;
        if (step == 0 || size != made) {
            grow(made, size);
            at(size);
            made = size;
        }
    }
}

// The value of a key; empty if it was left out.
inline std::string text(const char* key) {
    const char* value = std::getenv(key);
    return value == nullptr ? "" : value;
}

// The value of a key that the starter has checked; 0 if it was left out.
inline std::size_t number(const char* key) { return std::strtoull(text(key).c_str(), nullptr, 10); }

// True for the first of two words, false for the second.
inline bool first_of(const char* key, const std::string& first, const std::string& second) {
    if (text(key) != first && text(key) != second) {
        bad_usage("The key `" + std::string(key) + "` takes `" + first + "` or `" + second + "`.");
    }
    return text(key) == first;
}

// Runs a workload with the number of workers; prints the version if asked to.
template <class Run>
int main_of(int count, char** arguments, const std::string& version, Run&& run) {
    if (count < 2) {
        bad_usage("No workload is given: let rival-start call it, or give --version.");
    }
    const std::string workload = arguments[1];
    if (workload == "--version") {
        std::printf("%s\n", version.c_str());
        return 0;
    }
    run(workload, number("workers"));
    bad_usage("The workload `" + workload + "` is unknown: see the README.");
}
