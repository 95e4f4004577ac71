/* A thread that has switched, for a debugger to stop in. */
#include "check.h"

__attribute__((noinline)) static long innermost(long n) { return n + 1; }

__attribute__((noinline)) static long middle(long n) { return innermost(n) + 1; }

static void *function_of_thread(void *n) {
  myth_yield();
  return (void *)middle((long)n);
}

int main(void) {
  void *result;
  CHECK(myth_join(myth_create(function_of_thread, (void *)1), &result) == 0);
  CHECK((long)result == 3);
  return 0;
}
