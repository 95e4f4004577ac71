// callbacks: threads that sleep, which is what std::thread has for code that runs later.
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "mailbox.hpp"
#include "measure.hpp"
#include "slope.hpp"
#include "workloads.hpp"

namespace {

// Keeps the work of a thread from being optimised away.
volatile std::size_t used;

void sleep_once(std::size_t first, std::size_t second) {
    std::this_thread::sleep_for(std::chrono::hours(1));
    used = first + second;
}

void sleep_in_loop(std::size_t index) {
    for (;;) {
        used = index;
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// Prints the least-squares line through numbers of threads and resident memories.
[[noreturn]] void print_line(const std::vector<Point>& points) {
    const double per_one = slope(points);
    const auto count = static_cast<double>(points.size());
    double middle = 0, level = 0, beside = 0, width = 0;
    for (const auto& [x, y] : points) {
        middle += x / count;
        level += y / count;
    }
    const double intercept = level - per_one * middle;
    for (const auto& [x, y] : points) {
        beside += std::pow(y - intercept - per_one * x, 2);
        width += std::pow(y - level, 2);
    }
    const double squared = width > 0 ? 1 - beside / width : 1;
    print_metrics({{"bytes_per_callback", per_one},
                   {"intercept_bytes", intercept},
                   {"r", std::sqrt(std::fmax(squared, 0))},
                   {"r2", squared}});
}

}  // namespace

void callbacks(std::size_t n, bool in_loop) {
    std::vector<Point> points;
    std::size_t started = 0;
    for (const std::size_t size : sizes(n)) {
        for (; started < size; ++started) {
            const std::size_t index = started;
            start_thread([index, in_loop] {
                in_loop ? sleep_in_loop(index) : sleep_once(index, index);
            }).detach();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        points.emplace_back(static_cast<double>(size), rss_bytes());
    }
    print_line(points);
}
