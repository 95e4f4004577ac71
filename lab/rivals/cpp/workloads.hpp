// The workloads of this rival; each prints its metrics and ends the program.
#pragma once

#include <cstddef>

[[noreturn]] void spawn(std::size_t n);
[[noreturn]] void ring(std::size_t n, std::size_t m, std::size_t tokens);
[[noreturn]] void mailbox_shared(std::size_t k, std::size_t bytes);
[[noreturn]] void mailbox_fresh(std::size_t k, std::size_t bytes);
[[noreturn]] void many_to_many(std::size_t processes, std::size_t messages);
[[noreturn]] void fan_in(std::size_t senders, std::size_t messages);
[[noreturn]] void ping_pong(std::size_t rounds);
[[noreturn]] void callbacks(std::size_t n, bool in_loop);
