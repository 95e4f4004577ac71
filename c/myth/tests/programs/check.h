/* What the test programs share: a check that ends the program, and deadlines. */
#pragma once
#include <errno.h>
#include <myth/myth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                       \
      abort();                                                                                      \
    }                                                                                               \
  } while (0)

/* A deadline so many milliseconds from now. */
static inline struct timespec in_ms(long ms) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  long ns = time.tv_nsec + (ms % 1000) * 1000000;
  time.tv_sec += ms / 1000 + ns / 1000000000;
  time.tv_nsec = ns % 1000000000;
  return time;
}

static inline int has_passed(struct timespec deadline) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec > deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec);
}
