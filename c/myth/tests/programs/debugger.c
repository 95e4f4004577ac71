/* A thread that has switched, for a debugger to stop in. */
#include "check.h"

/* No call may be a tail call, and nothing is known of what is passed: all frames are there, with any compiler. */
#define NO_TAIL_CALL __asm__ volatile("")

__attribute__((noinline)) static long innermost(long n) {
  NO_TAIL_CALL;
  return n + 1;
}

__attribute__((noinline)) static long middle(long n) {
  long result = innermost(n);
  NO_TAIL_CALL;
  return result + 1;
}

static void *function_of_thread(void *n) {
  myth_yield();
  void *result = (void *)middle((long)n);
  NO_TAIL_CALL;
  return result;
}

int main(void) {
  void *result;
  CHECK(myth_join(myth_create(function_of_thread, (void *)1), &result) == 0);
  CHECK((long)result == 3);
  return 0;
}
