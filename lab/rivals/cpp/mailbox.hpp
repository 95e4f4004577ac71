// A thread's mailbox, a gate, and the start of a thread.
//
// Invariant: the condition is signalled after the lock is released, so that the woken thread finds
// it free.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "measure.hpp"

// An unbounded queue; any thread sends, one thread receives.
template <typename Message>
class Mailbox {
public:
    void send(Message message) {
        {
            std::lock_guard lock(mutex_);
            queue_.push_back(std::move(message));
        }
        filled_.notify_one();
    }

    Message receive() {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return !queue_.empty(); });
        Message message = std::move(queue_.front());
        queue_.pop_front();
        return message;
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<Message> queue_;
};

// A counter that wakes the main thread when it is full.
class Gate {
public:
    explicit Gate(std::size_t full) : full_(full) {}

    void count() {
        if (count_.fetch_add(1) + 1 == full_) {
            opened_.send(true);
        }
    }

    // Only the main thread may call it.
    void wait() { opened_.receive(); }

private:
    std::atomic<std::size_t> count_{0};
    const std::size_t full_;
    Mailbox<bool> opened_;
};

// Starts a thread. Ends the program if the kernel refuses, because running threads hold the
// program's data.
template <typename Work>
std::thread start_thread(Work work) {
    try {
        return std::thread(std::move(work));
    } catch (const std::system_error&) {
        fail("The kernel starts no more threads: give a smaller number of processes.");
    }
}
