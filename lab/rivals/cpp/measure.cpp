// Resident memory and the ways in which the program ends.
#include "measure.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

void print_metrics(std::initializer_list<Metric> metrics) {
    for (const auto& [name, value] : metrics) {
        std::printf("%s %.3f\n", name, value);
    }
    std::fflush(stdout);
    std::_Exit(0);
}

void fail(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::_Exit(1);
}

void bad_usage(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::_Exit(2);
}

double rss_bytes() {
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
