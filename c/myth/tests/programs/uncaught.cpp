// An exception that leaves a thread's function ends the program with a sentence.
#include "check.h"

static void *throws(void *) { throw 7; }

int main() {
  myth_thread_t thread = myth_create(throws, nullptr);
  myth_join(thread, nullptr);
  return 0;
}
