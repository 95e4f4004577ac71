/* myth/myth.h: the functions of MassiveThreads, on Weald.
 *
 * Compile with -I PREFIX/include, link with -lmyth. The same in C and in C++.
 *
 * Rules
 * - Functions that return int return 0, or an error code of <errno.h>. `errno` itself is never set. Where MassiveThreads
 *   ends the program, these functions return an error code.
 * - A pointer that is passed must be valid for its type, or NULL where the function says so; otherwise NULL is EINVAL.
 * - A thread switches only inside a call of this header, never in between. It may resume on another OS thread
 *   (worker). `errno` and the exceptions of C++ that are being handled go with it. The address of anything that belongs to
 *   an OS thread does not: a variable with `__thread` or `thread_local`, and `&errno`, must not be kept over a call that
 *   may switch. (Compilers may keep the address of `errno` over a call; read it in a function that is not inlined if it
 *   matters.)
 * - Never switch: detach, self, equal, every _init and _destroy, trylock, unlock, cond_signal, cond_broadcast,
 *   join_counter_dec, spin locks, keys, attributes, worker numbers, unless the call starts the runtime. All others may.
 * - Who may call: any thread, whether made by this library or by the system, unless a function says otherwise. The one that makes
 *   the first call becomes a thread of this library, until myth_fini. Any other thread of the system parks when it waits.
 * - A long jump must stay on one stack, and must not leave a function that this library has called. myth_exit and
 *   myth_testcancel leave a thread's frames as a long jump does: destructors of C++ do not run.
 * - An exception of C++ that leaves a thread's function ends the program. One thrown and caught within the function may
 *   cross waits.
 * - Objects have a fixed size, need no memory beyond it, and no destroy before their memory is used otherwise. All
 *   zero is a valid mutex of the default type, cond, rwlock, spin lock, uncond, join counter (of zero) and once.
 */
#pragma once
#ifndef WEALD_MYTH_H
#define WEALD_MYTH_H

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "myth/myth_spinlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- types --- */

/* A thread. Valid until it is joined, or is detached and has ended. */
typedef struct myth_thread *myth_thread_t;
typedef void *(*myth_func_t)(void *);

enum {
  MYTH_MUTEX_NORMAL = 0,
  MYTH_MUTEX_ERRORCHECK = 1,
  MYTH_MUTEX_RECURSIVE = 2,
  MYTH_MUTEX_INVALID = 3,
  MYTH_MUTEX_DEFAULT = MYTH_MUTEX_NORMAL
};

typedef struct myth_mutexattr {
  int type;
} myth_mutexattr_t;

typedef struct myth_mutex {
  int weald_magic;
  myth_mutexattr_t attr;
  size_t weald_private[4];
} myth_mutex_t;

#define MYTH_MUTEX_INITIALIZER { 0, { MYTH_MUTEX_DEFAULT }, { 0, 0, 0, 0 } }

enum {
  MYTH_RWLOCK_PREFER_READER = 0,
  MYTH_RWLOCK_PREFER_WRITER = 1,
  MYTH_RWLOCK_PREFER_WRITER_NONRECURSIVE = 2,
  MYTH_RWLOCK_PREFER_INVALID = 3,
  MYTH_RWLOCK_DEFAULT = MYTH_RWLOCK_PREFER_READER
};

typedef struct myth_rwlockattr {
  int kind;
} myth_rwlockattr_t;

typedef struct myth_rwlock {
  size_t weald_private[4];
  myth_rwlockattr_t attr;
} myth_rwlock_t;

#define MYTH_RWLOCK_INITIALIZER { { 0, 0, 0, 0 }, { MYTH_RWLOCK_DEFAULT } }

typedef struct myth_condattr {
  void *unused;
} myth_condattr_t;

typedef struct myth_cond {
  size_t weald_private[4];
} myth_cond_t;

#define MYTH_COND_INITIALIZER { { 0, 0, 0, 0 } }

typedef struct myth_barrierattr {
  void *unused;
} myth_barrierattr_t;

typedef struct myth_barrier {
  size_t weald_private[4];
} myth_barrier_t;

#define MYTH_BARRIER_SERIAL_THREAD 1

typedef struct myth_join_counterattr {
  void *unused;
} myth_join_counterattr_t;

typedef struct myth_join_counter {
  size_t weald_private[8];
} myth_join_counter_t;

typedef struct myth_felockattr {
  void *unused;
} myth_felockattr_t;

typedef struct myth_felock {
  size_t weald_private[15];
} myth_felock_t;

typedef struct myth_uncond {
  size_t weald_private;
} myth_uncond_t;

enum {
  myth_once_state_init = 0,
  myth_once_state_in_progress = 1,
  myth_once_state_completed = 2
};

typedef struct myth_once {
  volatile int state;
} myth_once_t;

#define MYTH_ONCE_INIT { 0 }

typedef int myth_key_t;
typedef pthread_key_t myth_wls_key_t;

typedef struct myth_globalattr {
  size_t stacksize;
  size_t guardsize;
  int n_workers;
  int bind_workers;
  int child_first;
  int initialized;
} myth_globalattr_t;

typedef struct myth_thread_attr {
  void *stackaddr;
  size_t stacksize;
  size_t guardsize;
  int detachstate;
  int child_first;
  size_t custom_data_size;
  void *custom_data;
} myth_thread_attr_t;

/* --- the runtime --- */

/* Starts the runtime, if it does not run. Every function that needs it does so itself. Its settings are those of
 * myth_globalattr_set_... with NULL, else of the environment: MYTH_NUM_WORKERS (default, and for 0: as many as the program may
 * use cores), MYTH_DEF_STKSIZE (bytes; default 131072), MYTH_BIND_WORKERS (1: each worker stays on one core; default 0),
 * MYTH_CPU_LIST (the cores for that: "0,4-8,10-20:2"; a range leaves out its end), MYTH_CHILD_FIRST (default 1). EAGAIN: the
 * system refuses OS threads. */
int myth_init(void);
/* The same with `attr`, or with NULL as above. Without effect on a runtime that runs. EINVAL: more than 1024 workers. */
int myth_init_ex(myth_globalattr_t *attr);
/* Ends the runtime, and gives the caller its OS thread back. Only the thread that started the runtime may call it; for
 * others it does nothing. Nothing else of this library may be in use. Threads that wait end there, as if cancelled, and
 * their identifiers are lost. Their destructors of keys run, and can no longer create threads (ECANCELED) or wait.
 * Afterwards the runtime can be started again. */
void myth_fini(void);

/* In all of these NULL for `attr` means the settings of the next runtime. */
int myth_globalattr_init(myth_globalattr_t *attr);
int myth_globalattr_destroy(myth_globalattr_t *attr);
int myth_globalattr_get_stacksize(myth_globalattr_t *attr, size_t *stacksize);
int myth_globalattr_set_stacksize(myth_globalattr_t *attr, size_t stacksize);
/* Kept, and without effect: each stack has a guard page. */
int myth_globalattr_get_guardsize(myth_globalattr_t *attr, size_t *guardsize);
int myth_globalattr_set_guardsize(myth_globalattr_t *attr, size_t guardsize);
int myth_globalattr_get_n_workers(myth_globalattr_t *attr, size_t *n_workers);
int myth_globalattr_set_n_workers(myth_globalattr_t *attr, size_t n_workers);
int myth_globalattr_get_bind_workers(myth_globalattr_t *attr, int *bind_workers);
int myth_globalattr_set_bind_workers(myth_globalattr_t *attr, int bind_workers);
int myth_globalattr_get_child_first(myth_globalattr_t *attr, int *child_first);
int myth_globalattr_set_child_first(myth_globalattr_t *attr, int child_first);

/* --- threads --- */

/* Creates a thread that calls func(arg). Each thread must be joined once or detached once. NULL: the system refuses a
 * stack or memory. With one worker the thread runs until it waits or ends before this returns. Such a thread gets most
 * of its memory at its first wait; if the system refuses it then, the program ends. So may a thread with several workers
 * that its joiner runs. These mostly get their stack when they begin: if the system refuses it, they are not begun before
 * there is one, and NULL is not returned. */
myth_thread_t myth_create(myth_func_t func, void *arg);
/* The same with attributes, or with NULL as above. `id` may be NULL. It is written before the thread begins. */
int myth_create_ex(myth_thread_t *id, myth_thread_attr_t *attr, myth_func_t func, void *arg);
/* Ends the calling thread with the result `ret`. In a thread of the system, and in the one that started the runtime, it
 * ends the program as exit(0) does. */
void myth_exit(void *ret);
/* Waits until `th` has ended, its destructors of keys included, and frees it. `result` may be NULL. EINVAL: it cannot be
 * joined. EDEADLK: it is the caller. */
int myth_join(myth_thread_t th, void **result);
/* The same without a wait. EBUSY: it has not ended. */
int myth_tryjoin(myth_thread_t th, void **result);
/* The same with a deadline by CLOCK_REALTIME. EBUSY: it has not ended by then. */
int myth_timedjoin(myth_thread_t th, void **result, const struct timespec *abstime);
/* Calls func(args + i * arg_stride) for each i below nthreads, in up to as many threads, and waits for all. The result goes to
 * results + i * result_stride, the thread's identifier to ids + i * id_stride. `ids`, `attrs` and `results` may be NULL. A
 * thread may be given several calls, so func must not end it: no myth_exit, and no myth_testcancel in a thread that is
 * cancelled. All are waited for, also with attributes of detached threads. */
int myth_create_join_many_ex(myth_thread_t *ids, myth_thread_attr_t *attrs, myth_func_t func, void *args, void *results,
                             size_t id_stride, size_t attr_stride, size_t arg_stride, size_t result_stride,
                             long nthreads);
/* The same with a function for each. */
int myth_create_join_various_ex(myth_thread_t *ids, myth_thread_attr_t *attrs, myth_func_t *funcs, void *args,
                                void *results, size_t id_stride, size_t attr_stride, size_t func_stride,
                                size_t arg_stride, size_t result_stride, long nthreads);
/* Nobody will join `th`, which is freed when it has ended. */
int myth_detach(myth_thread_t th);
/* Whether the caller is a thread of this library. */
int myth_is_myth_worker(void);
myth_thread_t myth_self(void);
int myth_equal(myth_thread_t t1, myth_thread_t t2);

/* The defaults are those of the runtime, or if none runs, of the next one. `stackaddr` is kept, and without effect: stacks
 * come from a pool. A stacksize of 0 means the runtime's. */
int myth_thread_attr_init(myth_thread_attr_t *attr);
int myth_thread_attr_getdetachstate(const myth_thread_attr_t *attr, int *detachstate);
int myth_thread_attr_setdetachstate(myth_thread_attr_t *attr, int detachstate);
int myth_thread_attr_getguardsize(const myth_thread_attr_t *attr, size_t *guardsize);
int myth_thread_attr_setguardsize(myth_thread_attr_t *attr, size_t guardsize);
int myth_thread_attr_getstacksize(const myth_thread_attr_t *attr, size_t *stacksize);
int myth_thread_attr_setstacksize(myth_thread_attr_t *attr, size_t stacksize);
int myth_thread_attr_getstack(const myth_thread_attr_t *attr, void **stackaddr, size_t *stacksize);
int myth_thread_attr_setstack(myth_thread_attr_t *attr, void *stackaddr, size_t stacksize);

/* The number of workers. */
int myth_getconcurrency(void);
int myth_get_num_workers(void);
/* The worker that runs the caller, from 0; -1: none does. It may change at the next call that may switch. As the first
 * call of all, it starts the runtime. */
int myth_get_worker_num(void);

enum {
  myth_yield_option_half_half = 0,   /* whoever waits longest */
  myth_yield_option_local_only = 1,  /* only a thread of this worker; if there is none, the caller goes on */
  myth_yield_option_local_first = 2, /* a thread of this worker, else of another one */
  myth_yield_option_steal_only = 3,  /* only a thread of another worker */
  myth_yield_option_steal_first = 4  /* a thread of another worker, else of this one */
};
/* Lets others run. */
void myth_yield_ex(int yield_opt);
void myth_yield(void);
int myth_sched_yield(void);

/* The caller sleeps, and its worker runs others. */
unsigned int myth_sleep(unsigned int s);
int myth_usleep(useconds_t usec);
/* `rem` may be NULL; it becomes zero. EINVAL: the time is negative, or has a billion nanoseconds. */
int myth_nanosleep(const struct timespec *req, struct timespec *rem);

/* --- cancelling --- */

#define MYTH_CANCEL_ENABLE 0
#define MYTH_CANCEL_DISABLE 1
#define MYTH_CANCEL_DEFERRED 0
#define MYTH_CANCEL_ASYNCHRONOUS 1
#define MYTH_CANCELED ((void *)-1)

/* Asks `th` to end: its next myth_testcancel ends it with the result MYTH_CANCELED, unless it has disabled that. No other function
 * does. */
int myth_cancel(myth_thread_t th);
int myth_setcancelstate(int state, int *oldstate);
/* EINVAL for any type but MYTH_CANCEL_DEFERRED. */
int myth_setcanceltype(int type, int *oldtype);
void myth_testcancel(void);

/* --- once --- */

/* Calls init_routine, unless it was called; waits if another thread calls it. */
int myth_once(myth_once_t *once_control, void (*init_routine)(void));

/* --- mutex --- */

/* `attr` may be NULL. EINVAL: there is no such type. */
int myth_mutex_init(myth_mutex_t *mutex, const myth_mutexattr_t *attr);
/* EBUSY: somebody has it. */
int myth_mutex_destroy(myth_mutex_t *mutex);
/* EBUSY: somebody has it. */
int myth_mutex_trylock(myth_mutex_t *mtx);
/* EDEADLK: the caller has it, and it checks for errors. A thread may lock a recursive one again, and unlocks it as often. */
int myth_mutex_lock(myth_mutex_t *mtx);
/* A deadline by CLOCK_REALTIME, as in all that follow. ETIMEDOUT. */
int myth_mutex_timedlock(myth_mutex_t *mtx, const struct timespec *abstime);
/* EPERM: nobody has it, or for another type than the default, not the caller. */
int myth_mutex_unlock(myth_mutex_t *mtx);
int myth_mutexattr_init(myth_mutexattr_t *attr);
int myth_mutexattr_destroy(myth_mutexattr_t *attr);
int myth_mutexattr_gettype(const myth_mutexattr_t *attr, int *type);
int myth_mutexattr_settype(myth_mutexattr_t *attr, int type);

/* --- a lock for many readers or one writer --- */

/* `attr` may be NULL. EINVAL: there is no such kind. */
int myth_rwlock_init(myth_rwlock_t *rwlock, const myth_rwlockattr_t *attr);
/* EBUSY: somebody has it. */
int myth_rwlock_destroy(myth_rwlock_t *rwlock);
int myth_rwlock_rdlock(myth_rwlock_t *rwlock);
int myth_rwlock_tryrdlock(myth_rwlock_t *rwlock);
int myth_rwlock_timedrdlock(myth_rwlock_t *rwlock, const struct timespec *abstime);
int myth_rwlock_wrlock(myth_rwlock_t *rwlock);
int myth_rwlock_trywrlock(myth_rwlock_t *rwlock);
int myth_rwlock_timedwrlock(myth_rwlock_t *rwlock, const struct timespec *abstime);
/* EPERM: nobody has it. */
int myth_rwlock_unlock(myth_rwlock_t *rwlock);
int myth_rwlockattr_init(myth_rwlockattr_t *attr);
int myth_rwlockattr_destroy(myth_rwlockattr_t *attr);
int myth_rwlockattr_getkind(const myth_rwlockattr_t *attr, int *pref);
int myth_rwlockattr_setkind(myth_rwlockattr_t *attr, int pref);

/* --- condition variable --- */

/* `attr` may be NULL. */
int myth_cond_init(myth_cond_t *cond, const myth_condattr_t *attr);
int myth_cond_destroy(myth_cond_t *cond);
int myth_cond_signal(myth_cond_t *c);
int myth_cond_broadcast(myth_cond_t *cond);
/* The caller has `mutex`, else EPERM. */
int myth_cond_wait(myth_cond_t *cond, myth_mutex_t *mutex);
/* ETIMEDOUT: the deadline passed first; the caller has the mutex again. */
int myth_cond_timedwait(myth_cond_t *cond, myth_mutex_t *mutex, const struct timespec *abstime);
int myth_condattr_init(myth_condattr_t *attr);
int myth_condattr_destroy(myth_condattr_t *attr);

/* --- barrier --- */

/* `attr` may be NULL. EINVAL: `count` is zero. */
int myth_barrier_init(myth_barrier_t *barrier, const myth_barrierattr_t *attr, unsigned int count);
int myth_barrier_destroy(myth_barrier_t *barrier);
/* Waits until `count` threads have called it. Returns MYTH_BARRIER_SERIAL_THREAD for one of them, 0 for the others. */
int myth_barrier_wait(myth_barrier_t *barrier);
int myth_barrierattr_init(myth_barrierattr_t *attr);
int myth_barrierattr_destroy(myth_barrierattr_t *attr);

/* --- join counter --- */

/* `attr` may be NULL. EINVAL: `val` is negative. */
int myth_join_counter_init(myth_join_counter_t *jc, const myth_join_counterattr_t *attr, int val);
/* Waits until it was decremented `val` times. */
int myth_join_counter_wait(myth_join_counter_t *jc);
/* EINVAL: it was decremented as often already. */
int myth_join_counter_dec(myth_join_counter_t *jc);
int myth_join_counterattr_init(myth_join_counterattr_t *attr);
int myth_join_counterattr_destroy(myth_join_counterattr_t *attr);

/* --- full/empty lock: a lock with a status, 0 or 1 --- */

/* `attr` may be NULL. The status is 0. */
int myth_felock_init(myth_felock_t *fe, const myth_felockattr_t *attr);
/* EBUSY: somebody has it. */
int myth_felock_destroy(myth_felock_t *fe);
int myth_felock_lock(myth_felock_t *fe);
/* EPERM: nobody has it. */
int myth_felock_unlock(myth_felock_t *fe);
/* Waits until it is free and has the status, and locks it. EINVAL: there is no such status. */
int myth_felock_wait_and_lock(myth_felock_t *fe, int status_to_wait);
/* Sets the status, and unlocks it. EPERM: nobody has it. */
int myth_felock_mark_and_signal(myth_felock_t *fe, int status_to_signal);
int myth_felock_status(myth_felock_t *fe);
int myth_felockattr_init(myth_felockattr_t *attr);
int myth_felockattr_destroy(myth_felockattr_t *attr);

/* --- unconditional wait: a wait and a signal meet; whichever comes first waits for the other --- */

int myth_uncond_init(myth_uncond_t *uncond);
int myth_uncond_destroy(myth_uncond_t *u);
int myth_uncond_wait(myth_uncond_t *uncond);
/* Ends the wait that began first. If there is none, it waits until one begins. */
int myth_uncond_signal(myth_uncond_t *uncond);

/* --- what a thread keeps, under a key --- */

/* When a thread ends that has ever set a value, destr_function, which may be NULL, is called with its value, also if that
 * is NULL. EAGAIN: there are 1024 keys. Threads of the system, and the one that started the runtime, call none. */
int myth_key_create(myth_key_t *key, void (*destr_function)(void *));
int myth_key_delete(myth_key_t key);
int myth_setspecific(myth_key_t key, const void *data);
void *myth_getspecific(myth_key_t key);

/* --- what a worker keeps, under a key of the system --- */

int myth_wls_key_create(myth_wls_key_t *key, void (*destr_function)(void *));
int myth_wls_key_delete(myth_wls_key_t key);
int myth_wls_setspecific(myth_wls_key_t key, const void *data);
void *myth_wls_getspecific(myth_wls_key_t key);

#ifdef __cplusplus
}
#endif

#endif
