// What the workloads measure with: the clock, resident memory, metrics, and the traffic
// pattern.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

using Clock = std::chrono::steady_clock;

// One line of the output.
using Metric = std::pair<const char*, double>;

// Prints the metrics and ends the program without waiting for threads that are still alive.
[[noreturn]] void print_metrics(std::initializer_list<Metric> metrics);

// Ends the program with one sentence: because it cannot do what was asked, or because it was called
// wrongly.
[[noreturn]] void fail(const std::string& sentence);
[[noreturn]] void bad_usage(const std::string& sentence);

// RssAnon and RssShmem of /proc/self/status, in bytes.
double rss_bytes();

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
