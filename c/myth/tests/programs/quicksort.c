/* Quicksort with a thread for one half of each part. Arguments: how many elements; how often; and how: "serial" without
 * threads, "direct" with calls of the library, "structure" through pointers, as a runtime of another language has them. */
#include "check.h"

/* Shaped as the structure `Myth` of SML#: every function that it imports. */
struct myth_structure {
  struct {
    myth_thread_t (*create)(myth_func_t, void *);
    int (*join)(myth_thread_t, void **);
    int (*detach)(myth_thread_t);
    void (*yield)(void);
    void (*yield_ex)(int);
    void (*exit)(void *);
    myth_thread_t (*self)(void);
    int (*equal)(myth_thread_t, myth_thread_t);
  } thread;
  struct {
    int (*init)(myth_barrier_t *, const myth_barrierattr_t *, unsigned);
    int (*destroy)(myth_barrier_t *);
    int (*wait)(myth_barrier_t *);
  } barrier;
  struct {
    int (*init)(myth_mutex_t *, const myth_mutexattr_t *);
    int (*destroy)(myth_mutex_t *);
    int (*lock)(myth_mutex_t *);
    int (*trylock)(myth_mutex_t *);
    int (*unlock)(myth_mutex_t *);
  } mutex;
  struct {
    int (*init)(myth_cond_t *, const myth_condattr_t *);
    int (*destroy)(myth_cond_t *);
    int (*signal)(myth_cond_t *);
    int (*broadcast)(myth_cond_t *);
    int (*wait)(myth_cond_t *, myth_mutex_t *);
  } cond;
};

/* Not const: the compiler must not look through the pointers. */
static struct myth_structure Myth = {
  { myth_create, myth_join, myth_detach, myth_yield, myth_yield_ex, myth_exit, myth_self, myth_equal },
  { myth_barrier_init, myth_barrier_destroy, myth_barrier_wait },
  { myth_mutex_init, myth_mutex_destroy, myth_mutex_lock, myth_mutex_trylock, myth_mutex_unlock },
  { myth_cond_init, myth_cond_destroy, myth_cond_signal, myth_cond_broadcast, myth_cond_wait },
};

enum way { SERIAL, DIRECT, STRUCTURE };
static enum way way;

struct part {
  int *first;
  long count;
};

static void insertion_sort(int *a, long n) {
  for (long i = 1; i < n; i++) {
    int x = a[i];
    long j = i;
    for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

/* Hoare's partition; returns the beginning of the right part. */
static long partition(int *a, long n) {
  int pivot = a[n / 2];
  long i = 0, j = n - 1;
  while (i <= j) {
    while (a[i] < pivot) i++;
    while (a[j] > pivot) j--;
    if (i <= j) {
      int x = a[i];
      a[i++] = a[j];
      a[j--] = x;
    }
  }
  return i;
}

static void *sort(void *argument) {
  struct part *part = argument;
  int *a = part->first;
  long n = part->count;
  if (n <= 50) {
    insertion_sort(a, n);
    return NULL;
  }
  long middle = partition(a, n);
  struct part left = { a, middle }, right = { a + middle, n - middle };
  if (n <= 400 || way == SERIAL) {
    sort(&left);
    sort(&right);
    return NULL;
  }
  myth_thread_t thread = way == DIRECT ? myth_create(sort, &left) : Myth.thread.create(sort, &left);
  CHECK(thread != NULL);
  sort(&right);
  CHECK((way == DIRECT ? myth_join(thread, NULL) : Myth.thread.join(thread, NULL)) == 0);
  return NULL;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 808080;
  int rounds = argc > 2 ? atoi(argv[2]) : 1;
  const char *how = argc > 3 ? argv[3] : "direct";
  way = !strcmp(how, "serial") ? SERIAL : !strcmp(how, "structure") ? STRUCTURE : DIRECT;
  int *a = malloc((size_t)n * sizeof *a);
  for (int round = 0; round < rounds; round++) {
    long state = 7;
    for (long i = 0; i < n; i++) {
      state = (state * 2017 + 2020) % 2027;
      a[i] = (int)state + 1;
    }
    struct part all = { a, n };
    sort(&all);
    for (long i = 1; i < n; i++) CHECK(a[i - 1] <= a[i]);
  }
  free(a);
  return 0;
}
