// The cost of one more item, as the slope of the least-squares line over several sizes.
#pragma once

#include <utility>
#include <vector>

// A count and a total.
using Point = std::pair<double, double>;

inline double slope(const std::vector<Point>& points) {
    double middle = 0, level = 0, along = 0, width = 0;
    for (const auto& [x, y] : points) {
        middle += x / static_cast<double>(points.size());
        level += y / static_cast<double>(points.size());
    }
    for (const auto& [x, y] : points) {
        along += (x - middle) * (y - level);
        width += (x - middle) * (x - middle);
    }
    return along / width;
}

// The sizes at which something that grows to `n` is measured.
inline std::vector<std::size_t> sizes(std::size_t n) {
    std::vector<std::size_t> sizes;
    for (std::size_t step = 0; step <= 8; ++step) {
        if (sizes.empty() || sizes.back() != n * step / 8) {
            sizes.push_back(n * step / 8);
        }
    }
    return sizes;
}
