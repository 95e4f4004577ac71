/* Fibonacci numbers with a thread for each call: how to create and join threads. */
#include <myth/myth.h>
#include <stdio.h>
#include <stdlib.h>

static void *fib(void *argument) {
  long n = (long)argument;
  if (n < 2) return argument;
  myth_thread_t thread = myth_create(fib, (void *)(n - 1));
  if (thread == NULL) {
    fprintf(stderr, "no further thread can be had\n");
    exit(1);
  }
  long second = (long)fib((void *)(n - 2));
  void *first;
  myth_join(thread, &first);
  return (void *)((long)first + second);
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 20;
  printf("fib(%ld) = %ld\n", n, (long)fib((void *)n));
  return 0;
}
