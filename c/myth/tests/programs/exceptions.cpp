// Exceptions in threads: thrown, caught and handled across waits, on several stacks at once.
#include "check.h"
#include <exception>
#include <stdexcept>
#include <string>

static void yield_a_few_times() {
  for (int i = 0; i < 5; i++) myth_yield_ex(i);
}

struct Guard {
  int *destroyed;
  ~Guard() {
    // A wait while an exception is in flight.
    yield_a_few_times();
    CHECK(std::uncaught_exceptions() == 1);
    ++*destroyed;
  }
};

static void *throws(void *argument) {
  long number = reinterpret_cast<long>(argument);
  int destroyed = 0;
  for (int round = 0; round < 50; round++) {
    try {
      Guard guard{&destroyed};
      yield_a_few_times();
      throw std::runtime_error(std::to_string(number * 1000 + round));
    } catch (const std::exception &caught) {
      // A wait while an exception is handled; others throw and catch meanwhile.
      yield_a_few_times();
      CHECK(std::stol(caught.what()) == number * 1000 + round);
      try {
        yield_a_few_times();
        throw;
      } catch (const std::runtime_error &again) {
        CHECK(std::stol(again.what()) == number * 1000 + round);
        yield_a_few_times();
      }
      CHECK(std::current_exception() != nullptr);
    }
    CHECK(std::current_exception() == nullptr && std::uncaught_exceptions() == 0);
  }
  CHECK(destroyed == 50);
  return nullptr;
}

int main() {
  myth_thread_t threads[10];
  for (long i = 0; i < 10; i++) threads[i] = myth_create(throws, reinterpret_cast<void *>(i));
  throws(reinterpret_cast<void *>(10L));
  for (auto thread : threads) CHECK(myth_join(thread, nullptr) == 0);
  return 0;
}
