// Reads key=value arguments; a wrong one ends the program with one sentence and exit code 2.
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <system_error>

#include "measure.hpp"

// The key=value arguments that have not been asked for yet.
class Keys {
public:
    Keys(int count, char** arguments) {
        for (int i = 0; i < count; ++i) {
            const std::string pair = arguments[i];
            const auto equals = pair.find('=');
            if (equals == std::string::npos) {
                bad_usage("The argument `" + pair + "` is not of the form key=value.");
            }
            if (!keys_.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
                bad_usage("The key `" + pair.substr(0, equals) + "` is given twice: give it once.");
            }
        }
    }

    std::string take(const std::string& key) {
        const auto found = keys_.extract(key);
        if (found.empty()) {
            bad_usage("The key `" + key + "` is missing: give it as " + key + "=VALUE.");
        }
        return found.mapped();
    }

    std::size_t number(const std::string& key) {
        const std::string text = take(key);
        std::size_t number = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc() || rest != end || number < 1) {
            bad_usage("The key `" + key + "` takes a whole number of at least 1.");
        }
        return number;
    }

    // The number, or `other` if the key is left out.
    std::size_t number_or(const std::string& key, std::size_t other) {
        return keys_.contains(key) ? number(key) : other;
    }

    // True for the first of two words, false for the second.
    bool first_of(const std::string& key, const std::string& first, const std::string& second) {
        const std::string text = take(key);
        if (text != first && text != second) {
            bad_usage("The key `" + key + "` takes `" + first + "` or `" + second + "`.");
        }
        return text == first;
    }

    void finish() const {
        if (!keys_.empty()) {
            const std::string& key = keys_.begin()->first;
            bad_usage("The key `" + key + "` does not belong to this workload: leave it out.");
        }
    }

private:
    std::map<std::string, std::string> keys_;
};
