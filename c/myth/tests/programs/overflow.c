/* A stack that overflows ends the program with a sentence. */
#include "check.h"

static long deeper(long n) {
  volatile char room[1024];
  room[n % 1024] = (char)n;
  return n < 0 ? 0 : deeper(n + 1) + room[n % 1024];
}

static void *overflows(void *argument) { return (void *)deeper((long)argument); }

int main(void) {
  myth_thread_t thread = myth_create(overflows, NULL);
  myth_join(thread, NULL);
  return 0;
}
