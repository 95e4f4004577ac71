/* Quicksort with a thread for one half of each part. Arguments: how many elements; how often; and how: "serial" without
 * threads, "direct" with calls of the library, "structure" through pointers, as a runtime of another language has them;
 * then the rest of the structure is used, too. */
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

/* An object of that runtime: 60 bytes in its heap, with any content before; what lies behind is another object. */
enum { OBJECT = 60, BEHIND = 8 };
static void *object(void) {
  char *bytes = malloc(OBJECT + BEHIND);
  memset(bytes, 0xa5, OBJECT + BEHIND);
  return bytes;
}
static void check_behind(void *object) {
  for (int i = OBJECT; i < OBJECT + BEHIND; i++) CHECK(((char *)object)[i] == (char)0xa5);
}

enum { THREADS = 100, TURNS = 50 };
static myth_once_t once;
static myth_key_t key;
static int keys_made, destroyed, turns, leaders;
static void *the_mutex, *the_cond, *the_barrier;

static void destroys(void *value) {
  free(value);
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}
static void makes_key(void) {
  keys_made++;
  CHECK(myth_key_create(&key, destroys) == 0);
}
/* As that runtime does before it enters the other language. */
static void enters(void) {
  CHECK(myth_once(&once, makes_key) == 0);
  if (!myth_getspecific(key)) CHECK(myth_setspecific(key, malloc(8)) == 0);
}

static void *takes_part(void *argument) {
  enters();
  for (int turn = 0; turn < TURNS; turn++) {
    CHECK(Myth.mutex.lock(the_mutex) == 0);
    turns++;
    CHECK(Myth.cond.signal(the_cond) == 0 && Myth.mutex.unlock(the_mutex) == 0);
    if (turn % 10 == 0) Myth.thread.yield_ex(myth_yield_option_local_only);
    void *own = object();
    CHECK(Myth.mutex.init(own, NULL) == 0 && Myth.mutex.trylock(own) == 0 && Myth.mutex.unlock(own) == 0);
    check_behind(own);
    /* Nobody destroys it. */
    free(own);
  }
  int led = Myth.barrier.wait(the_barrier);
  CHECK(led == 0 || led == MYTH_BARRIER_SERIAL_THREAD);
  __atomic_add_fetch(&leaders, led, __ATOMIC_RELAXED);
  myth_thread_t self = Myth.thread.self();
  CHECK(Myth.thread.equal(self, Myth.thread.self()));
  if ((long)argument % 2) {
    CHECK(Myth.thread.detach(self) == 0);
    Myth.thread.exit(NULL);
  }
  return argument;
}

static void uses_the_rest(void) {
  the_mutex = object();
  the_cond = object();
  the_barrier = object();
  CHECK(Myth.mutex.init(the_mutex, NULL) == 0 && Myth.cond.init(the_cond, NULL) == 0);
  CHECK(Myth.barrier.init(the_barrier, NULL, THREADS) == 0);
  enters();
  myth_thread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) threads[i] = Myth.thread.create(takes_part, (void *)i);
  CHECK(Myth.mutex.lock(the_mutex) == 0);
  while (turns < THREADS * TURNS) CHECK(Myth.cond.wait(the_cond, the_mutex) == 0);
  CHECK(Myth.mutex.unlock(the_mutex) == 0);
  for (long i = 0; i < THREADS; i += 2) {
    void *result;
    CHECK(Myth.thread.join(threads[i], &result) == 0 && result == (void *)i);
  }
  /* The others are detached. */
  while (__atomic_load_n(&destroyed, __ATOMIC_RELAXED) < THREADS) Myth.thread.yield();
  CHECK(leaders == 1 && keys_made == 1);
  check_behind(the_mutex);
  check_behind(the_cond);
  check_behind(the_barrier);
  CHECK(Myth.cond.broadcast(the_cond) == 0 && Myth.cond.destroy(the_cond) == 0);
  CHECK(Myth.mutex.destroy(the_mutex) == 0 && Myth.barrier.destroy(the_barrier) == 0);
  free(the_mutex);
  free(the_cond);
  free(the_barrier);
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
  if (way == STRUCTURE) uses_the_rest();
  return 0;
}
