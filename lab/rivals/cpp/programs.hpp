// The programs that fork and join, as templates over a way to fork: the same algorithms, sizes and
// data as in lab/src/programs.
//
// A way to fork has a static `join(a, b)`, which calls both and returns when both have ended. A program
// has `reset`, `run<Fork>`, `check`, which ends the rival if the answer is wrong, `keep_answer`, and
// `run_serial_part`, which returns false if there is no serial part.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "measure.hpp"

// Two plain calls.
struct Plain {
    template <class A, class B>
    static void join(A&& a, B&& b) {
        a();
        b();
    }
};

// Two calls, neither of which is inlined.
struct Outlined {
    template <class A, class B>
    static void join(A&& a, B&& b) {
        call(a);
        call(b);
    }

private:
    template <class A>
    [[gnu::noinline]] static void call(A&& half) {
        half();
    }
};

// Two calls, which are counted.
struct Counted {
    static inline std::uint64_t forks = 0;

    template <class A, class B>
    static void join(A&& a, B&& b) {
        ++forks;
        a();
        b();
    }
};

// The step of SplitMix64.
inline std::uint64_t mix(std::uint64_t number) {
    std::uint64_t z = number + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

class Fib {
public:
    explicit Fib(std::size_t n) : n_(static_cast<unsigned>(n)) {
        if (n > 90) {
            bad_usage("The number of forks would not fit: give n of at most 90.");
        }
    }

    void reset() { answer_ = 0; }

    template <class Fork>
    void run() {
        answer_ = fib<Fork>(n_);
    }

    void check() const {
        std::uint64_t a = 0, b = 1;
        for (unsigned i = 0; i < n_; ++i) {
            a = std::exchange(b, a + b);
        }
        if (answer_ != a) {
            fail("A wrong Fibonacci number was found.");
        }
    }

    void keep_answer() {}
    bool run_serial_part() { return false; }

private:
    template <class Fork>
    static std::uint64_t fib(unsigned n) {
        if (n < 2) {
            return n;
        }
        std::uint64_t a, b;
        Fork::join([&a, n] { a = fib<Fork>(n - 1); }, [&b, n] { b = fib<Fork>(n - 2); });
        return a + b;
    }

    unsigned n_;
    std::uint64_t answer_ = 0;
};

class Quicksort {
public:
    Quicksort(std::size_t n, bool random) : given_(n) {
        std::uint32_t seed = 7;
        for (std::size_t i = 0; i < n; ++i) {
            seed = (seed * 2017 + 2020) % 2027;
            given_[i] = random ? static_cast<std::uint32_t>(i) : seed + 1;
        }
        for (std::size_t i = 1; random && i < n; ++i) {
            std::swap(given_[i], given_[mix(i) % (i + 1)]);
        }
        work_ = sorted_ = given_;
        std::sort(sorted_.begin(), sorted_.end());
    }

    void reset() { std::copy(given_.begin(), given_.end(), work_.begin()); }

    template <class Fork>
    void run() {
        sort<Fork>(work_);
    }

    void check() const {
        if (work_ != sorted_) {
            fail("The array is not sorted, or its elements are not those that were given.");
        }
    }

    void keep_answer() {}

    bool run_serial_part() {
        if (work_.size() <= forked_above) {
            return false;
        }
        partition(work_);
        return true;
    }

private:
    using Data = std::span<std::uint32_t>;
    static constexpr std::size_t inserted = 50, forked_above = 400;

    template <class Fork>
    static void sort(Data data) {
        if (data.size() <= inserted) {
            insert(data);
            return;
        }
        const auto [left, right] = partition(data);
        if (data.size() <= forked_above) {
            sort<Plain>(left);
            sort<Plain>(right);
        } else {
            Fork::join([l = left] { sort<Fork>(l); }, [r = right] { sort<Fork>(r); });
        }
    }

    // Moves what is smaller than the pivot before what is greater.
    static std::pair<Data, Data> partition(Data data) {
        const std::uint32_t pivot = data[data.size() / 2];
        std::size_t left = 0, right = data.size();
        do {
            while (data[left] < pivot) {
                ++left;
            }
            while (data[right - 1] > pivot) {
                --right;
            }
            if (left >= right) {
                break;
            }
            std::swap(data[left++], data[--right]);
        } while (left < right);
        return {data.first(right), data.subspan(left)};
    }

    static void insert(Data data) {
        for (std::size_t sorted = 1; sorted < data.size(); ++sorted) {
            const std::uint32_t element = data[sorted];
            std::size_t place = sorted;
            for (; place > 0 && data[place - 1] > element; --place) {
                data[place] = data[place - 1];
            }
            data[place] = element;
        }
    }

    std::vector<std::uint32_t> given_, work_, sorted_;
};

class Queens {
public:
    explicit Queens(std::size_t n) : n_(n) {
        if (n > most) {
            bad_usage("The board is too large: give n of at most 16.");
        }
    }

    void reset() { answer_ = 0; }

    template <class Fork>
    void run() {
        answer_ = solutions<Fork>(Board{{}, 0, n_});
    }

    void check() const {
        static constexpr std::array<std::uint64_t, most> right = {
            1,   0,   0,    2,     10,    4,      40,      92,
            352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
        if (answer_ != right[n_ - 1]) {
            fail("A wrong number of solutions was found.");
        }
    }

    void keep_answer() {}
    bool run_serial_part() { return false; }

private:
    static constexpr std::size_t most = 16;

    // The columns of the queens in the first rows; each half gets a copy.
    struct Board {
        std::array<std::uint8_t, most> columns;
        std::size_t rows, n;

        bool is_free(int column) const {
            for (std::size_t row = rows; row-- > 0;) {
                const int queen = columns[row], distance = static_cast<int>(rows - row);
                if (queen == column || std::abs(queen - column) == distance) {
                    return false;
                }
            }
            return true;
        }

        Board with(std::uint8_t column) const {
            Board next = *this;
            next.columns[next.rows++] = column;
            return next;
        }
    };

    using Columns = std::span<const std::uint8_t>;

    template <class Fork>
    static std::uint64_t solutions(const Board& board) {
        if (board.rows == board.n) {
            return 1;
        }
        std::array<std::uint8_t, most> free;
        std::size_t count = 0;
        for (std::uint8_t column = 0; column < board.n; ++column) {
            if (board.is_free(column)) {
                free[count++] = column;
            }
        }
        return count == 0 ? 0 : among<Fork>(board, Columns(free.data(), count));
    }

    // The number of solutions with a queen in one of these columns of the next row.
    template <class Fork>
    static std::uint64_t among(const Board& board, Columns columns) {
        if (columns.size() == 1) {
            return solutions<Fork>(board.with(columns[0]));
        }
        const std::size_t half = columns.size() / 2;
        std::uint64_t a, b;
        Fork::join([&a, board, columns, half] { a = among<Fork>(board, columns.first(half)); },
                   [&b, board, columns, half] { b = among<Fork>(board, columns.subspan(half)); });
        return a + b;
    }

    std::size_t n_;
    std::uint64_t answer_ = 0;
};

class Tree {
public:
    Tree(std::size_t nodes, std::size_t depth, bool random)
        : nodes_(nodes), depth_(depth), random_(random) {
        if (!random && nodes % (2 * depth) != 0) {
            bad_usage("No such tree has that many nodes: give a multiple of twice the depth.");
        }
    }

    void reset() { found_ = {}; }

    template <class Fork>
    void run() {
        found_ = random_ ? random<Fork>(mix(root), depth_) : left<Fork>(nodes_, depth_);
    }

    void check() const {
        if (found_.nodes != nodes_) {
            fail("The tree has " + std::to_string(found_.nodes) + " nodes and should have " +
                 std::to_string(nodes_) + ".");
        }
        if (right_.nodes != 0 && right_.greatest != found_.greatest) {
            fail("The greatest value is not the one that was found first.");
        }
    }

    void keep_answer() { right_ = found_; }
    bool run_serial_part() { return false; }

private:
    static constexpr std::uint64_t root = 36;

    struct Found {
        std::uint64_t nodes = 0, greatest = 0;

        Found operator+(const Found& other) const {
            return {nodes + other.nodes, std::max(greatest, other.greatest)};
        }
    };

    static Found one(std::uint64_t node) { return {1, mix(node)}; }

    static std::uint64_t children(std::uint64_t node) {
        std::uint64_t count = 0;
        for (; node % 5 != 0; node /= 5) {
            ++count;
        }
        return count;
    }

    template <class Fork>
    static Found random(std::uint64_t node, std::uint64_t levels) {
        const std::uint64_t count = levels == 0 ? 0 : children(node);
        return count == 0 ? one(node) : one(node) + among<Fork>(node, levels, 0, count);
    }

    // Searches some of a node's children.
    template <class Fork>
    static Found among(std::uint64_t node, std::uint64_t levels, std::uint64_t start,
                       std::uint64_t end) {
        if (end - start == 1) {
            return random<Fork>(mix(node ^ (start + 1)), levels - 1);
        }
        const std::uint64_t middle = (start + end) / 2;
        Found a, b;
        Fork::join([=, &a] { a = among<Fork>(node, levels, start, middle); },
                   [=, &b] { b = among<Fork>(node, levels, middle, end); });
        return a + b;
    }

    // The path at the left of the root; as many nodes, balanced, at its right.
    template <class Fork>
    static Found left(std::uint64_t nodes, std::uint64_t depth) {
        const std::uint64_t half = nodes / 2;
        Found a, b;
        Fork::join([=, &a] { a = way<Fork>(depth, half / depth); },
                   [=, &b] { b = balanced<Fork>(nodes, half - 1); });
        return one(nodes) + a + b;
    }

    template <class Fork>
    static Found way(std::uint64_t steps, std::uint64_t each) {
        if (steps == 1) {
            return one(steps) + balanced<Fork>(steps, each - 1);
        }
        Found a, b;
        Fork::join([=, &a] { a = way<Fork>(steps - 1, each); },
                   [=, &b] { b = balanced<Fork>(steps, each - 1); });
        return one(steps) + a + b;
    }

    template <class Fork>
    static Found balanced(std::uint64_t node, std::uint64_t nodes) {
        if (nodes == 0) {
            return {};
        }
        const std::uint64_t value = mix(node), rest = nodes - 1;
        Found a, b;
        Fork::join([=, &a] { a = balanced<Fork>(value ^ 1, rest / 2); },
                   [=, &b] { b = balanced<Fork>(value ^ 2, rest - rest / 2); });
        return one(value) + a + b;
    }

    std::uint64_t nodes_, depth_;
    bool random_;
    Found found_, right_;
};
