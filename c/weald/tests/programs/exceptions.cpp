/* Exceptions of C++ inside of units, across waits: each unit has its own. */
#include "check.h"
#include <exception>
#include <stdexcept>
#include <string>

static void *throws(void *context) {
  std::string mine = std::to_string(reinterpret_cast<long>(context));
  for (int n = 0; n < 50; n++) {
    try {
      DO(weald_yield());
      throw std::runtime_error(mine);
    } catch (const std::exception &caught) {
      DO(weald_yield());
      CHECK(caught.what() == mine);
      try {
        try {
          throw;
        } catch (const std::exception &again) {
          DO(weald_sleep(100000));
          CHECK(std::current_exception() != nullptr && again.what() == mine);
        }
      } catch (...) {
        abort();
      }
    }
    CHECK(std::current_exception() == nullptr);
  }
  return context;
}

static void test(void) {
  weald_thread threads[8];
  for (long n = 0; n < 8; n++)
    DO(weald_thread_spawn(NULL, throws, reinterpret_cast<void *>(n), &threads[n]));
  for (long n = 0; n < 8; n++) DO(weald_thread_join(threads[n], WEALD_FOREVER, NULL));
}
