/* An exception that nobody catches in the function of a thread. */
#include "check.h"

static void *throws(void *) { throw 7; }

static void test(void) {
  weald_thread thread;
  DO(weald_thread_spawn(NULL, throws, NULL, &thread));
  DO(weald_thread_join(thread, WEALD_FOREVER, NULL));
}
