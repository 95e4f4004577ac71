// What the workloads measure with: the command line, the clock, resident memory and the line through it, metrics, and
// the traffic pattern.
#pragma once

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <system_error>
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

// RssAnon and RssShmem of /proc/self/status, in bytes.
inline double rss_bytes() {
    std::ifstream status("/proc/self/status");
    if (!status) {
        fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.");
    }
    double total = 0;
    for (std::string word; status >> word;) {
        if (word == "RssAnon:" || word == "RssShmem:") {
            double kilobytes = 0;
            status >> kilobytes;
            total += kilobytes * 1024;
        }
    }
    return total;
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

// The least-squares line; `squared` is the square of its correlation.
struct Line {
    double slope, intercept, squared;
};

// The line through numbers of things and resident memory; `grow` makes more of them, from one number to another.
template <class Grow>
Line measured(std::size_t n, Grow grow) {
    std::vector<std::pair<double, double>> points;
    std::size_t made = 0;
    for (std::size_t step = 0; step <= 8; ++step) {
        const std::size_t size = n * step / 8;
        if (points.empty() || size != made) {
            grow(made, size);
            points.emplace_back(static_cast<double>(size), rss_bytes());
            made = size;
        }
    }
    double middle = 0, level = 0, along = 0, width = 0, spread = 0;
    for (const auto& [x, y] : points) {
        middle += x / static_cast<double>(points.size());
        level += y / static_cast<double>(points.size());
    }
    for (const auto& [x, y] : points) {
        along += (x - middle) * (y - level);
        width += (x - middle) * (x - middle);
        spread += (y - level) * (y - level);
    }
    const double slope = along / width;
    const double squared = spread > 0 ? along * along / (width * spread) : 1;
    return {slope, level - slope * middle, squared};
}

// The key=value arguments; a wrong one ends the program with one sentence and exit code 2.
class Keys {
public:
    // `known` are the keys that there may be, separated by spaces.
    Keys(int count, char** arguments, const std::string& known) {
        for (int i = 0; i < count; ++i) {
            const std::string pair = arguments[i];
            const auto equals = pair.find('=');
            const std::string key = pair.substr(0, equals);
            if (equals == std::string::npos) {
                bad_usage("The argument `" + pair + "` is not of the form key=value.");
            }
            if ((" " + known + " ").find(" " + key + " ") == std::string::npos) {
                bad_usage("The key `" + key + "` does not belong to this workload: leave it out.");
            }
            if (!keys_.emplace(key, pair.substr(equals + 1)).second) {
                bad_usage("The key `" + key + "` is given twice: give it once.");
            }
        }
    }

    const std::string& text(const std::string& key) const {
        const auto found = keys_.find(key);
        if (found == keys_.end()) {
            bad_usage("The key `" + key + "` is missing: give it as " + key + "=VALUE.");
        }
        return found->second;
    }

    std::size_t number(const std::string& key) const {
        const std::string& text = this->text(key);
        std::size_t number = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc() || rest != end || number < 1) {
            bad_usage("The key `" + key + "` takes a whole number of at least 1.");
        }
        return number;
    }

    // The number, or `other` if the key is left out.
    std::size_t number_or(const std::string& key, std::size_t other) const {
        return keys_.contains(key) ? number(key) : other;
    }

    // True for the first of two words, false for the second.
    bool first_of(const std::string& key, const std::string& first, const std::string& second) const {
        const std::string& text = this->text(key);
        if (text != first && text != second) {
            bad_usage("The key `" + key + "` takes `" + first + "` or `" + second + "`.");
        }
        return text == first;
    }

private:
    std::map<std::string, std::string> keys_;
};

// Runs a workload with its keys and the number of workers; prints the version if asked to. `workloads` has the keys of
// each besides `workers`.
template <class Run>
int main_of(int count, char** arguments, const std::string& version,
            const std::map<std::string, std::string>& workloads, Run&& run) {
    if (count < 2) {
        bad_usage("No workload is given: call it as WORKLOAD key=value ..., or with --version.");
    }
    const std::string workload = arguments[1];
    if (workload == "--version") {
        std::printf("%s\n", version.c_str());
        return 0;
    }
    const auto known = workloads.find(workload);
    if (known == workloads.end()) {
        bad_usage("The workload `" + workload + "` is unknown: see the README.");
    }
    const Keys keys(count - 2, arguments + 2, "workers " + known->second);
    run(workload, keys, keys.number("workers"));
    bad_usage("There is no such program: see the README.");
}
