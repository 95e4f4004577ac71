/* weald.h: Weald for C and for languages that can call C.
 *
 * Compile with -I PREFIX/include, link with -lweald. The same in C and in C++.
 *
 * Rules
 * - A function that returns weald_code returns WEALD_OK, which is 0, or why it has not done what it was asked for. Then
 *   it has written no result, unless it says otherwise. weald_code_text has a text for each code, and
 *   weald_last_error a sentence for the last error. errno is never set, and is kept over calls.
 * - Handles are numbers. Zero is nobody's handle. weald_release releases a handle of any kind. A call with a handle
 *   that was released, or that is of another kind, returns WEALD_HANDLE. Calls that use the object at the time of the
 *   release go on.
 * - A pointer that is passed must be valid for its type for as long as the call lasts, or null where the function says
 *   so; else null is WEALD_NULL. What a function keeps it copies; the context of a function is only passed on. Texts
 *   are UTF-8 with a zero byte at the end; others are WEALD_ARGUMENT.
 * - Bytes that a function returns belong to the caller, who frees them with weald_bytes_free.
 * - Durations and time limits are nanoseconds. A negative limit is no limit, and zero tries without waiting.
 * - Who may call: any unit (a process, a thread, a callback, a forked function) and any OS thread of the program,
 *   unless a function says otherwise. A call that waits suspends a unit, while other units run on its OS thread, and
 *   blocks an OS thread of the program. A unit stays on its OS thread once it has waited; errno and the exceptions of
 *   C++ that it handles go with it. Variables with __thread or thread_local are shared by all units of an OS thread.
 * - A unit that blocks without a call of this library (a system call, a lock of pthreads, a long computation) stops
 *   the units that have waited on its OS thread before, and no others. weald_blocking is for what blocks.
 * - A unit that was cancelled, or whose runtime shuts down, is told by WEALD_CANCELLED: each of its calls that wait
 *   ends so from then on. Its function should free what it holds, and return. Nothing is unwound.
 * - A long jump must not leave a function that this library has called. An exception of C++ that leaves one ends the
 *   program with a sentence; one that is thrown and caught within the function may cross waits.
 * - After fork(2), a child process must call exec or _exit, and no function of this library.
 */

#ifndef WEALD_H
#define WEALD_H

#include <stddef.h>
#include <stdint.h>

/* The capacity of a channel whose sends never wait. */
#define WEALD_UNBOUNDED SIZE_MAX

/**
 * No time limit. Every negative limit means the same.
 */
#define WEALD_FOREVER -1

/**
 * A time limit of nothing: the call tries, and does not wait.
 */
#define WEALD_AT_ONCE 0

/**
 * The function of the process runs on an OS thread of its own: for languages that keep state with the OS thread, such
 * as an interpreter with a lock, where two units on one OS thread must not interleave. A wait in it blocks that OS
 * thread and nothing else. When the process is cancelled, it ends at once, its function finds no more messages
 * (WEALD_CANCELLED), weald_check_cancel tells it, and other waits of the function go on. What it spawns goes to the
 * default runtime, unless it is linked. The function must return: it must not end its OS thread, as pthread_exit does.
 */
#define WEALD_OWN_THREAD 1

/**
 * The process is linked with its caller, a process, from the beginning: see weald_process_link. It runs in the runtime
 * of its caller. May be combined with WEALD_OWN_THREAD.
 */
#define WEALD_LINKED 2

/**
 * How a process ended: it returned, and `code` is what its function returned.
 */
#define WEALD_EXIT_RETURNED 0

/**
 * It was cancelled, or its runtime shut down.
 */
#define WEALD_EXIT_CANCELLED 1

/**
 * It crashed, by a mistake in this library.
 */
#define WEALD_EXIT_CRASHED 2

/**
 * It had ended before, and it is not known how: it was found by a name, and lost the name meanwhile; or the caller has
 * linked with a process that had ended.
 */
#define WEALD_EXIT_UNKNOWN 3

/**
 * A case of a choice that is a send: of `length` bytes at `data`, to `channel`.
 */
#define WEALD_CASE_SEND 1

/**
 * A case that is a receive from `channel`, into `message`.
 */
#define WEALD_CASE_RECEIVE 2

/**
 * A case that is chosen when `duration_ns` nanoseconds have passed.
 */
#define WEALD_CASE_AFTER 3

/**
 * A case that is never chosen.
 */
#define WEALD_CASE_NEVER 4

/**
 * How far a commit must have got before it returns: as far as the forest gets, for one on disk until it survives the
 * loss of power.
 */
#define WEALD_LEVEL_DEFAULT 0

/**
 * The forest has taken it.
 */
#define WEALD_LEVEL_ACCEPTED 1

/**
 * It survives the end of the program.
 */
#define WEALD_LEVEL_BUFFERED 2

/**
 * It survives the loss of power.
 */
#define WEALD_LEVEL_DURABLE 3

/**
 * A place for a node: before all children of a node.
 */
#define WEALD_FIRST_IN 0

/**
 * A place: after all children of a node.
 */
#define WEALD_LAST_IN 1

/**
 * A place: before a node, with the same parent.
 */
#define WEALD_BEFORE 2

/**
 * A place: after a node, with the same parent.
 */
#define WEALD_AFTER 3

/**
 * The value of the attribute is `value`.
 */
#define WEALD_FIND_EQUAL 0

/**
 * The value of the attribute begins with `value`.
 */
#define WEALD_FIND_PREFIX 1

/**
 * The value of the attribute is at least `value` and less than `end`, in the order of bytes; if `end` is null, however
 * large.
 */
#define WEALD_FIND_RANGE 2

/**
 * What a function returns: `WEALD_OK`, or why it has not done what it was asked for. Later versions may have more
 * codes.
 */
typedef int32_t weald_code;

/**
 * What a handle of any kind is: a number. Zero is nobody's. A handle belongs to the program, and not to a thread: any
 * thread and any unit may use it and release it, unless its kind says otherwise.
 */
typedef uint64_t weald_handle;

/**
 * Bytes that a function has returned. They belong to the caller, who frees them with `weald_bytes_free`. Behind them
 * is a zero byte, which does not count.
 */
typedef struct {
  /**
   * The first byte; null if these bytes were freed.
   */
  uint8_t *data;
  /**
   * How many there are.
   */
  size_t length;
} weald_bytes;

/**
 * How a runtime is made. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
 */
typedef struct {
  /**
   * The size of this struct.
   */
  size_t size;
  /**
   * How many workers it has; 0: one for each core.
   */
  size_t workers;
  /**
   * How many OS threads it may have beyond its workers, for units that block; 0: the default.
   */
  size_t spare_threads;
  /**
   * The first part of the names of its OS threads; null: `weald`.
   */
  const char *name;
} weald_runtime_options;

/**
 * A runtime: workers, each on an OS thread, that run units (processes, threads, callbacks). Any OS thread and any unit
 * may use it; a unit must not shut down its own.
 */
typedef uint64_t weald_runtime;

/**
 * The function of a thread. What it returns is the result of the thread.
 */
typedef void *(*weald_thread_function)(void *context);

/**
 * How a unit is spawned. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
 */
typedef struct {
  /**
   * The size of this struct.
   */
  size_t size;
  /**
   * Where; 0: the runtime of the caller, or the default one.
   */
  weald_runtime runtime;
  /**
   * The size of the stack in bytes, for a thread, and for a process with an OS thread of its own; 0: the default,
   * which for a thread is 128 KiB.
   */
  size_t stack_size;
  /**
   * WEALD_OWN_THREAD, WEALD_LINKED, or both, for processes; or 0.
   */
  uint32_t flags;
  /**
   * The name of the unit in reports, which is copied; or null.
   */
  const char *name;
} weald_spawn_options;

/**
 * The function of a process. What it returns is the code with which the process ends.
 */
typedef int32_t (*weald_process_function)(void *context);

/**
 * A process: a unit with a mailbox. Any thread and any unit may send to it, wait for its end and cancel it. Only the
 * process itself receives.
 */
typedef uint64_t weald_process;

/**
 * How a process ended.
 */
typedef struct {
  /**
   * One of WEALD_EXIT_RETURNED, WEALD_EXIT_CANCELLED, WEALD_EXIT_CRASHED, WEALD_EXIT_UNKNOWN.
   */
  int32_t kind;
  /**
   * What its function returned; 0 if it did not return.
   */
  int32_t code;
} weald_exit;

/**
 * A function of the program that returns nothing.
 */
typedef void (*weald_task_function)(void *context);

/**
 * A monitor of a process, for weald_process_demonitor. It belongs to the process that began it.
 */
typedef uint64_t weald_monitor;

/**
 * A thread of Weald. Any thread and any unit may cancel it or join it, one at a time. It runs on its own if it was
 * detached or released.
 */
typedef uint64_t weald_thread;

/**
 * A function that is called for parts of a range, each from `begin` to before `end`.
 */
typedef void (*weald_range_function)(void *context, size_t begin, size_t end);

/**
 * A mutex, which a unit may hold across waits. The unit or OS thread that has locked it must unlock it. While one
 * holds it, others suspend, or block their OS thread outside of units.
 */
typedef uint64_t weald_mutex;

/**
 * A condition variable, for waits with a mutex. Any thread and any unit may use it.
 */
typedef uint64_t weald_condition;

/**
 * A lock that many units may hold for reading, or one for writing, also across waits. Whoever waits comes in turn: a
 * reader does not pass a writer that waits. The unit or OS thread that has locked it must unlock it.
 */
typedef uint64_t weald_rwlock;

/**
 * A number of permits. Whoever waits gets them in turn: one that wants many holds up those behind it. Any thread and
 * any unit may use it, and may release what another one has acquired.
 */
typedef uint64_t weald_semaphore;

/**
 * A channel of messages, first in first out. Any number of threads and units may send and receive by one handle.
 */
typedef uint64_t weald_channel;

/**
 * One case of a choice. What its kind does not use is not looked at.
 */
typedef struct {
  /**
   * One of WEALD_CASE_SEND, WEALD_CASE_RECEIVE, WEALD_CASE_AFTER, WEALD_CASE_NEVER.
   */
  int32_t kind;
  /**
   * The channel of a send or a receive.
   */
  weald_channel channel;
  /**
   * What a send sends: a copy of these bytes.
   */
  const void *data;
  /**
   * How many bytes.
   */
  size_t length;
  /**
   * How long to wait.
   */
  int64_t duration_ns;
  /**
   * What a receive that was chosen has received. It belongs to the caller.
   */
  weald_bytes message;
} weald_select_case;

/**
 * A callback: a function that is called later, by a worker. Any thread and any unit may cancel it. It belongs to the
 * unit that started it, and is dropped without a call when that unit ends; outside of units to the runtime. A callback
 * may wait, but others do not run on its worker meanwhile until some milliseconds have passed; let it send a message
 * instead.
 */
typedef uint64_t weald_callback;

/**
 * A version of a tree, which never changes. Any thread and any unit may read it, also at once. It is kept until it is
 * released.
 */
typedef uint64_t weald_view;

/**
 * A version of a forest. Those of one opening are ordered by their numbers.
 */
typedef struct {
  /**
   * The opening of the forest in which it was made.
   */
  uint64_t incarnation;
  /**
   * The number of the commit that made it.
   */
  uint64_t number;
} weald_tree_version;

/**
 * A node: its number in its tree, which it keeps in every version. Zero is no node.
 */
typedef uint64_t weald_node;

/**
 * A forest: trees with names, whose versions are kept. Any thread and any unit may use it.
 */
typedef uint64_t weald_forest;

/**
 * How a forest is opened. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
 */
typedef struct {
  /**
   * The size of this struct.
   */
  size_t size;
  /**
   * How many of the newest versions of each tree are kept in memory; 0: the default, 1000. Versions with tags are
   * kept as well.
   */
  size_t keep;
  /**
   * What a commit with WEALD_LEVEL_DEFAULT waits for: one of WEALD_LEVEL_DEFAULT, WEALD_LEVEL_ACCEPTED,
   * WEALD_LEVEL_BUFFERED, WEALD_LEVEL_DURABLE. A forest in memory takes the first two.
   */
  int32_t level;
} weald_forest_options;

/**
 * A tree of a forest. Any thread and any unit may use it.
 */
typedef uint64_t weald_tree;

/**
 * A watch of a tree, which yields its commits in their order. One call at a time.
 */
typedef uint64_t weald_watch;

/**
 * An edit of a tree: a private version. One call at a time. What it reads and changes decides with which other commits
 * it conflicts.
 */
typedef uint64_t weald_edit;

/**
 * Which nodes to find. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
 */
typedef struct {
  /**
   * The size of this struct.
   */
  size_t size;
  /**
   * One of WEALD_FIND_EQUAL, WEALD_FIND_PREFIX, WEALD_FIND_RANGE.
   */
  int32_t kind;
  /**
   * 1: the greatest value first; 0: the least.
   */
  int32_t reverse;
  /**
   * The name of the attribute.
   */
  const char *attribute;
  /**
   * With what its value is compared.
   */
  const void *value;
  /**
   * How many bytes.
   */
  size_t value_length;
  /**
   * The end of a range.
   */
  const void *end;
  /**
   * How many bytes.
   */
  size_t end_length;
  /**
   * Only this node and those below it; 0: all nodes.
   */
  weald_node under;
  /**
   * How many nodes to find at most; 0: all.
   */
  size_t limit;
} weald_query;

/**
 * What is behind the program's own bytes in a message that tells how a process ended. Copy it out of the message,
 * where it need not be aligned.
 */
typedef struct {
  /**
   * The number of the process, as weald_process_number tells it; 0 if it is not known.
   */
  uint64_t process;
  /**
   * How it ended. WEALD_EXIT_UNKNOWN if it had ended before.
   */
  weald_exit exit;
} weald_notice;

/**
 * It is done.
 */
#define WEALD_OK 0

/**
 * A pointer is null that must not be.
 */
#define WEALD_NULL 1

/**
 * A number, a size, a flag or a text is not one that the function takes.
 */
#define WEALD_ARGUMENT 2

/**
 * No object has this handle: it was released, or is one of another kind, or is no handle.
 */
#define WEALD_HANDLE 3

/**
 * The time limit passed.
 */
#define WEALD_TIMED_OUT 4

/**
 * The channel is closed, or the process has ended.
 */
#define WEALD_CLOSED 5

/**
 * The calling unit, or the thread that it joins, was cancelled. The unit should return soon: each further wait in it
 * ends with this code at once.
 */
#define WEALD_CANCELLED 6

/**
 * Another call uses the object at this moment, and only one may.
 */
#define WEALD_BUSY 7

/**
 * There is no memory, no stack or no OS thread left, or a limit is reached.
 */
#define WEALD_NO_ROOM 8

/**
 * The runtime is shutting down, or has.
 */
#define WEALD_SHUT_DOWN 9

/**
 * The caller is not in a process.
 */
#define WEALD_NO_PROCESS 10

/**
 * The name is taken.
 */
#define WEALD_TAKEN 11

/**
 * There is no tree, node, attribute, version or process of this name or number.
 */
#define WEALD_MISSING 12

/**
 * The mutex, or the lock, is not held by the caller.
 */
#define WEALD_NOT_OWNER 13

/**
 * The caller holds the mutex, or the lock, already, or would wait for its own end.
 */
#define WEALD_DEADLOCK 14

/**
 * A commit that was made meanwhile conflicts with this one. Edit the newest version, and commit again.
 */
#define WEALD_CONFLICT 15

/**
 * The edit is not possible: the node is a root, or would be below itself.
 */
#define WEALD_REFUSED 16

/**
 * The watch was too slow, and missed commits. It goes on; read the newest version.
 */
#define WEALD_LAGGED 17

/**
 * The system or the journal refused. The sentence of the error says what.
 */
#define WEALD_SYSTEM 18

/**
 * A mistake in this library. The sentence of the error says what happened.
 */
#define WEALD_INTERNAL 19

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as "0.1.0".
 */
const char *weald_library_version(void);

/**
 * The text of a code. It stays valid.
 */
const char *weald_code_text(weald_code code);

/**
 * The sentence of the last error on the calling OS thread, which says more than its code. Empty if there was none.
 * Read it before anything else happens in the unit: it is valid until the next call of this library on this OS thread,
 * and a call that waits lets other units run there.
 */
const char *weald_last_error(void);

/**
 * Releases a handle of any kind. Calls that use its object at this moment go on. A thread, a process or a callback
 * that was released runs on, and nobody can join or cancel it by this handle; a channel is closed; a runtime is shut
 * down: its units are cancelled, with a time limit of 5 s, and in the background if the last to use the runtime is a
 * unit; an edit that was not committed is lost; a forest on disk is closed when nobody uses it or its trees any
 * longer. WEALD_HANDLE if it was released before.
 */
weald_code weald_release(weald_handle handle);

/**
 * Frees bytes that a function returned, and sets `data` to null. Bytes whose `data` is null are left as they are, so a
 * second call does no harm; nor does null.
 */
void weald_bytes_free(weald_bytes *bytes);

/**
 * Creates a runtime. Most programs need none: without one, units run on the default runtime, which starts at the first
 * call that needs it and ends with the program.
 */
weald_code weald_runtime_create(const weald_runtime_options *options,
                                weald_runtime *runtime);

/**
 * Runs `function` as a thread of a runtime, and waits until it has returned. `result`, which may be null, gets what it
 * returned. In the function, units are spawned on this runtime, unless their options name another one. Zero is the
 * runtime of the caller, or the default one. If the caller is cancelled, so is the function, and the call returns
 * WEALD_CANCELLED when the function has returned.
 */
weald_code weald_runtime_run(weald_runtime runtime,
                             weald_thread_function function,
                             void *context,
                             void **result);

/**
 * Shuts a runtime down: it takes no new units, and lets those that there are end within the limit; then it cancels
 * them, so that their waits end with WEALD_CANCELLED. `unended`, which may be null, gets the number of units that did
 * not end even so. WEALD_BUSY while another call uses the runtime. Afterwards the handle is released. Not for a unit
 * of this runtime, which would wait for its own end until the limit. A caller that is cancelled meanwhile gets
 * WEALD_CANCELLED when the runtime is shut down.
 */
weald_code weald_runtime_shutdown(weald_runtime runtime,
                                  int64_t limit_ns,
                                  size_t *unended);

/**
 * Returns 1 in a unit, where calls that wait suspend the unit, and 0 elsewhere, where they block the OS thread.
 */
int32_t weald_in_unit(void);

/**
 * WEALD_CANCELLED if the calling unit was cancelled, else WEALD_OK. For units that compute for long, and should end
 * when they were cancelled; every call that waits tells it as well.
 */
weald_code weald_check_cancel(void);

/**
 * Spawns a process, which calls `function` with `context`. It ends when the function returns, with the code that it
 * returns. `options` may be null.
 */
weald_code weald_process_spawn(const weald_spawn_options *options,
                               weald_process_function function,
                               void *context,
                               weald_process *process);

/**
 * A handle of the calling process, to be released as any other. WEALD_NO_PROCESS outside of processes, in callbacks
 * and in forked functions.
 */
weald_code weald_process_self(weald_process *process);

/**
 * Sends a copy of `length` bytes at `data` to a process. Never waits. WEALD_CLOSED if the process has ended.
 */
weald_code weald_process_send(weald_process process,
                              const void *data,
                              size_t length);

/**
 * Receives the oldest message of the calling process. The bytes belong to the caller. WEALD_TIMED_OUT if none came
 * in time; WEALD_NO_PROCESS outside of processes, in callbacks and in forked functions.
 */
weald_code weald_process_receive(int64_t limit_ns,
                                 weald_bytes *message);

/**
 * Sets `alive` to 1 if the process has not ended, else to 0.
 */
weald_code weald_process_is_alive(weald_process process, int32_t *alive);

/**
 * Cancels a process: the wait in which it is, or its next one, ends with WEALD_CANCELLED, and so does each further
 * one; its function should return then. The process ends with WEALD_EXIT_CANCELLED. Does nothing if it has ended.
 */
weald_code weald_process_cancel(weald_process process);

/**
 * Waits until a process has ended. `exit`, which may be null, gets how. Any number of callers may wait. The handle is
 * not released. WEALD_DEADLOCK if the caller is the function of this process.
 */
weald_code weald_process_wait(weald_process process,
                              int64_t limit_ns,
                              weald_exit *exit);

/**
 * Calls `function` with `context`, as a callback, once the process has ended; soon, if it has ended already.
 */
weald_code weald_process_on_end(weald_process process,
                                weald_task_function function,
                                void *context);

/**
 * Lets the other units that can run have their turn. Outside of units it lets another OS thread run.
 */
weald_code weald_yield(void);

/**
 * Waits for a duration, which is not negative.
 */
weald_code weald_sleep(int64_t duration_ns);

/**
 * The number of a process, which no other one has, as notices name it.
 */
weald_code weald_process_number(weald_process process, uint64_t *number);

/**
 * Links the calling process with another one: when one of them is cancelled, or returns a code other than 0, the other
 * is cancelled, unless it traps exits. There is one link between two processes, however often they are linked. If the
 * other one has ended already, the caller is cancelled: spawn with WEALD_LINKED what may end soon. WEALD_NO_PROCESS
 * outside of processes.
 */
weald_code weald_process_link(weald_process process);

/**
 * Removes the link between the calling process and another one, if there is one.
 */
weald_code weald_process_unlink(weald_process process);

/**
 * From now on a link does not cancel the calling process when another one ends, whatever code that returned: the
 * process receives a message, a copy of `length` bytes at `data` and behind them a weald_notice.
 * weald_process_cancel still cancels it.
 */
weald_code weald_process_trap_exits(const void *data,
                                    size_t length);

/**
 * From now on links cancel the calling process again. Notices that have come stay.
 */
weald_code weald_process_untrap_exits(void);

/**
 * Lets the calling process receive a message when another one ends: a copy of `length` bytes at `data`, and behind
 * them a weald_notice. It comes at once if that one has ended. `monitor`, which may be null, gets a handle, to be
 * released or given to weald_process_demonitor. WEALD_NO_PROCESS outside of processes.
 */
weald_code weald_process_monitor(weald_process process,
                                 const void *data,
                                 size_t length,
                                 weald_monitor *monitor);

/**
 * Ends a monitor of the calling process, and releases its handle. No message comes from it any longer; one that came
 * before is still received. WEALD_ARGUMENT if another process began the monitor.
 */
weald_code weald_process_demonitor(weald_monitor monitor);

/**
 * Gives a process a name in the runtime of the caller (the default one outside of units). A process may have several.
 * It loses them when it ends. WEALD_TAKEN if another process has the name.
 */
weald_code weald_process_register(weald_process process,
                                  const char *name);

/**
 * Takes a name back. WEALD_MISSING if no process has it.
 */
weald_code weald_process_unregister(const char *name);

/**
 * A handle of the process that has a name, to be released as any other. WEALD_MISSING if there is none, or if it is a
 * process that takes other messages than those of this library.
 */
weald_code weald_process_find(const char *name,
                              weald_process *process);

/**
 * Starts a thread, which calls `function` with `context`. `options` may be null; they have no flags for threads.
 */
weald_code weald_thread_spawn(const weald_spawn_options *options,
                              weald_thread_function function,
                              void *context,
                              weald_thread *thread);

/**
 * Waits until a thread has ended, and releases its handle. `result`, which may be null, gets what its function
 * returned. WEALD_CANCELLED if the thread was cancelled, and then the handle is released, too; or if the caller was,
 * and then it is not: weald_check_cancel tells. WEALD_BUSY if another call joins the thread,
 * WEALD_DEADLOCK if the thread would join itself.
 */
weald_code weald_thread_join(weald_thread thread,
                             int64_t limit_ns,
                             void **result);

/**
 * Lets a thread run on its own, and releases its handle.
 */
weald_code weald_thread_detach(weald_thread thread);

/**
 * Cancels a thread, as weald_process_cancel cancels a process. Does nothing if it has ended.
 */
weald_code weald_thread_cancel(weald_thread thread);

/**
 * Calls `function` with `context`, as a callback, once the thread has ended; soon, if it has ended already.
 */
weald_code weald_thread_on_end(weald_thread thread,
                               weald_task_function function,
                               void *context);

/**
 * Calls `first` with `first_context` and `second` with `second_context`, perhaps on two workers at once, and returns
 * when both have returned. Either may fork in its turn. In a forked function weald_process_receive is not allowed.
 */
weald_code weald_fork(weald_task_function first,
                      void *first_context,
                      weald_task_function second,
                      void *second_context);

/**
 * Calls `function` with `context` for parts of the range from `begin` to before `end`, perhaps on several workers at
 * once, and returns when all parts are done. Each part has at most `grain` items; 0: about a thousandth of the range.
 */
weald_code weald_fork_range(size_t begin,
                            size_t end,
                            size_t grain,
                            weald_range_function function,
                            void *context);

/**
 * Calls `function`, which may block, with `context` on an OS thread that serves no units, and returns when it has
 * returned. The caller waits as for anything else. In the function, calls that wait block that OS thread.
 */
weald_code weald_blocking(weald_task_function function,
                          void *context);

/**
 * Creates a mutex that nobody holds.
 */
weald_code weald_mutex_create(weald_mutex *mutex);

/**
 * Locks a mutex. WEALD_DEADLOCK if the caller holds it already.
 */
weald_code weald_mutex_lock(weald_mutex mutex, int64_t limit_ns);

/**
 * Unlocks a mutex. Never waits. WEALD_NOT_OWNER if the caller does not hold it.
 */
weald_code weald_mutex_unlock(weald_mutex mutex);

/**
 * Creates a condition variable.
 */
weald_code weald_condition_create(weald_condition *condition);

/**
 * Unlocks a mutex that the caller holds, waits until the condition is signalled, and locks the mutex again. After
 * WEALD_TIMED_OUT the caller holds the mutex; after WEALD_CANCELLED it does not.
 */
weald_code weald_condition_wait(weald_condition condition,
                                weald_mutex mutex,
                                int64_t limit_ns);

/**
 * Wakes the longest waiter, if there is one. Never waits.
 */
weald_code weald_condition_signal(weald_condition condition);

/**
 * Wakes all waiters. Never waits.
 */
weald_code weald_condition_broadcast(weald_condition condition);

/**
 * Creates a lock for readers and writers that nobody holds.
 */
weald_code weald_rwlock_create(weald_rwlock *lock);

/**
 * Locks it for reading. A caller that reads already may do so again, and unlocks as often. WEALD_DEADLOCK if it would
 * have to wait for that, or writes already.
 */
weald_code weald_rwlock_read(weald_rwlock lock,
                             int64_t limit_ns);

/**
 * Locks it for writing. WEALD_DEADLOCK if the caller reads or writes already.
 */
weald_code weald_rwlock_write(weald_rwlock lock, int64_t limit_ns);

/**
 * Unlocks what the caller has locked. Never waits. WEALD_NOT_OWNER if the caller does not hold it.
 */
weald_code weald_rwlock_unlock(weald_rwlock lock);

/**
 * Creates a semaphore with `permits` permits.
 */
weald_code weald_semaphore_create(uint32_t permits, weald_semaphore *semaphore);

/**
 * Takes `count` permits at once, and waits until there are as many. WEALD_ARGUMENT if `count` is zero.
 */
weald_code weald_semaphore_acquire(weald_semaphore semaphore,
                                   uint32_t count,
                                   int64_t limit_ns);

/**
 * Adds `count` permits, which need not have been acquired before. Never waits. WEALD_ARGUMENT if there would be more
 * than 2^32 - 1.
 */
weald_code weald_semaphore_release(weald_semaphore semaphore,
                                   uint32_t count);

/**
 * Creates a channel that holds up to `capacity` messages which are sent and not yet received: 0 for a rendezvous,
 * where a send waits for its receive; WEALD_UNBOUNDED for one whose sends never wait.
 */
weald_code weald_channel_create(size_t capacity,
                                weald_channel *channel);

/**
 * Sends a copy of `length` bytes at `data`, once there is room. WEALD_CLOSED if the channel is closed,
 * WEALD_TIMED_OUT if there was no room in time; then nothing was sent.
 */
weald_code weald_channel_send(weald_channel channel,
                              const void *data,
                              size_t length,
                              int64_t limit_ns);

/**
 * Receives the oldest message, once there is one. The bytes belong to the caller. WEALD_CLOSED if the channel is
 * closed and empty.
 */
weald_code weald_channel_receive(weald_channel channel,
                                 int64_t limit_ns,
                                 weald_bytes *message);

/**
 * Closes a channel: sends fail from now on, and receives when no message is left. Its handle is not released.
 */
weald_code weald_channel_close(weald_channel channel);

/**
 * How many messages a channel holds, and whether it is closed (1) or not (0). Either address may be null.
 */
weald_code weald_channel_state(weald_channel channel,
                               size_t *length,
                               int32_t *is_closed);

/**
 * Waits until one of `count` cases is possible, and does it; exactly one is chosen, by chance if several are possible.
 * `chosen` gets its position, also if its channel was closed (WEALD_CLOSED). WEALD_TIMED_OUT if none was possible in
 * time; then nothing was sent or received.
 */
weald_code weald_select(weald_select_case *cases,
                        size_t count,
                        int64_t limit_ns,
                        size_t *chosen);

/**
 * Calls `function` with `context` soon, behind the callbacks that are ready. `callback` may be null.
 */
weald_code weald_callback_start(weald_task_function function,
                                void *context,
                                weald_callback *callback);

/**
 * Calls `function` with `context` once a duration has passed. `callback` may be null.
 */
weald_code weald_callback_after(int64_t duration_ns,
                                weald_task_function function,
                                void *context,
                                weald_callback *callback);

/**
 * Calls `function` with `context` once in each period, until it is cancelled. `callback` may be null.
 */
weald_code weald_callback_every(int64_t period_ns,
                                weald_task_function function,
                                void *context,
                                weald_callback *callback);

/**
 * Cancels a callback. `prevented`, which may be null, gets 1 if that has prevented a call, and 0 if the last call has
 * begun. The handle is not released.
 */
weald_code weald_callback_cancel(weald_callback callback,
                                 int32_t *prevented);

/**
 * Waits until a read of a descriptor would not wait: there is data, the other end is closed, or there is an error. For
 * sockets, pipes, terminals and whatever else epoll takes. The descriptor stays the caller's, and must stay open
 * meanwhile.
 */
weald_code weald_wait_readable(int descriptor,
                               int64_t limit_ns);

/**
 * Waits until a write to a descriptor would not wait; as weald_wait_readable.
 */
weald_code weald_wait_writable(int descriptor, int64_t limit_ns);

/**
 * The version of a view.
 */
weald_code weald_view_version(weald_view view, weald_tree_version *version);

/**
 * When the version of a view was committed: nanoseconds since the beginning of 1970.
 */
weald_code weald_view_time(weald_view view, int64_t *time_ns);

/**
 * How many nodes a view has.
 */
weald_code weald_view_length(weald_view view, uint64_t *length);

/**
 * The topmost node.
 */
weald_code weald_view_root(weald_view view, weald_node *node);

/**
 * The node above a node; zero above the root.
 */
weald_code weald_view_parent(weald_view view, weald_node node, weald_node *parent);

/**
 * The children of a node, in order. `count` gets how many it has, and `children` the first `capacity` of them, or
 * fewer; it may be null if `capacity` is zero.
 */
weald_code weald_view_children(weald_view view,
                               weald_node node,
                               weald_node *children,
                               size_t capacity,
                               size_t *count);

/**
 * The child of a node at a position. WEALD_MISSING behind the last one.
 */
weald_code weald_view_child(weald_view view, weald_node node, size_t position, weald_node *child);

/**
 * The bytes of an attribute of a node. WEALD_MISSING if it has none of this name.
 */
weald_code weald_view_get(weald_view view, weald_node node, const char *name, weald_bytes *value);

/**
 * The names of the attributes of a node, sorted, each with a zero byte behind it.
 */
weald_code weald_view_attributes(weald_view view, weald_node node, weald_bytes *names);

/**
 * Opens the forest in a directory, which is created if it is missing; or, if `directory` is null, a new one in
 * memory. A commit to a forest on disk survives the loss of power once it has returned, unless it asks for less.
 */
weald_code weald_forest_open(const char *directory,
                             weald_forest *forest);

/**
 * weald_forest_open with options, which may be null. WEALD_ARGUMENT if the forest has no such level.
 */
weald_code weald_forest_open_with(const char *directory,
                                  const weald_forest_options *options,
                                  weald_forest *forest);

/**
 * A forest on disk as it was when `version` was its newest version, however long ago: read from its files, for
 * reading only. Its trees have the names that they had. WEALD_MISSING if the forest never had the version, or no
 * longer has it; WEALD_ARGUMENT for a forest in memory, where weald_tree_view finds the versions that are kept.
 */
weald_code weald_forest_at(weald_forest forest,
                           const weald_tree_version *version,
                           weald_forest *past);

/**
 * Closes a forest, and releases its handle. What was committed is in its files then, and the directory may be opened
 * again, even while handles of its trees are left. A forest in memory is lost with its last handle.
 */
weald_code weald_forest_close(weald_forest forest);

/**
 * The names of all trees, sorted, each with a newline behind it, which no name contains.
 */
weald_code weald_forest_names(weald_forest forest, weald_bytes *names);

/**
 * Creates a tree of one node. WEALD_TAKEN if there is one of this name.
 */
weald_code weald_forest_create(weald_forest forest, const char *name, weald_tree *tree);

/**
 * The tree of a name. WEALD_MISSING if there is none.
 */
weald_code weald_forest_get(weald_forest forest, const char *name, weald_tree *tree);

/**
 * Deletes the tree of a name. Its handles and its versions can still be read.
 */
weald_code weald_forest_delete(weald_forest forest, const char *name);

/**
 * Renames a tree.
 */
weald_code weald_forest_rename(weald_forest forest, const char *name, const char *new_name);

/**
 * The name of a tree.
 */
weald_code weald_tree_name(weald_tree tree, weald_bytes *name);

/**
 * A view of a version of a tree: of the one at `version`, or of the newest one if that is null. WEALD_MISSING if
 * the version does not exist, or is no longer kept in memory.
 */
weald_code weald_tree_view(weald_tree tree,
                           const weald_tree_version *version,
                           weald_view *view);

/**
 * Watches a tree: the watch yields the commits after `since`, or from now on if that is null.
 */
weald_code weald_tree_watch(weald_tree tree, const weald_tree_version *since, weald_watch *watch);

/**
 * Waits for the next commit. `version` gets its version, and `view` a view of the tree as it left it, which is to be
 * released; either may be null. WEALD_LAGGED if commits were missed: the next call goes on behind them. WEALD_CLOSED
 * if the tree was deleted, or its journal was closed. WEALD_TIMED_OUT if no commit came in time.
 */
weald_code weald_watch_next(weald_watch watch,
                            int64_t limit_ns,
                            weald_tree_version *version,
                            weald_view *view);

/**
 * Begins an edit of a tree, from the version of a view of that tree, or from the newest one if `view` is zero.
 */
weald_code weald_edit_begin(weald_tree tree,
                            weald_view view,
                            weald_edit *edit);

/**
 * The topmost node.
 */
weald_code weald_edit_root(weald_edit edit, weald_node *node);

/**
 * The node above a node in the edit; zero above the root. The read does not count: no commit conflicts with it.
 */
weald_code weald_edit_parent(weald_edit edit,
                             weald_node node,
                             weald_node *parent);

/**
 * The children of a node in the edit, in order. `count` gets how many it has, and `children` the first `capacity` of
 * them, or fewer; it may be null if `capacity` is zero. The read counts: a commit that changes the list of the
 * children meanwhile conflicts.
 */
weald_code weald_edit_children(weald_edit edit,
                               weald_node node,
                               weald_node *children,
                               size_t capacity,
                               size_t *count);

/**
 * Adds a node without attributes at a place: WEALD_FIRST_IN, WEALD_LAST_IN, WEALD_BEFORE or WEALD_AFTER `at`.
 */
weald_code weald_edit_add(weald_edit edit,
                          int32_t place,
                          weald_node at,
                          weald_node *node);

/**
 * Moves a node, with all that is below it, to a place as in weald_edit_add.
 */
weald_code weald_edit_move(weald_edit edit, weald_node node, int32_t place, weald_node at);

/**
 * Deletes a node, with all that is below it.
 */
weald_code weald_edit_delete(weald_edit edit, weald_node node);

/**
 * Puts an attribute of a node to a copy of `length` bytes at `data`.
 */
weald_code weald_edit_put(weald_edit edit,
                          weald_node node,
                          const char *name,
                          const void *data,
                          size_t length);

/**
 * Deletes an attribute of a node.
 */
weald_code weald_edit_remove(weald_edit edit, weald_node node, const char *name);

/**
 * The bytes of an attribute in the edit. The read counts: a commit that changes the attribute meanwhile conflicts.
 */
weald_code weald_edit_get(weald_edit edit,
                          weald_node node,
                          const char *name,
                          weald_bytes *value);

/**
 * Commits an edit, and releases its handle, also if the commit fails. `level` is one of WEALD_LEVEL_DEFAULT,
 * WEALD_LEVEL_ACCEPTED, WEALD_LEVEL_BUFFERED, WEALD_LEVEL_DURABLE. `version`, which may be null, gets the version that
 * it made. WEALD_CONFLICT if another commit came first that it does not go with.
 */
weald_code weald_edit_commit(weald_edit edit,
                             int32_t level,
                             weald_tree_version *version);

/**
 * The versions of a tree that memory keeps without a gap, the oldest first. `count` gets how many there are, and
 * `versions` the first `capacity` of them, or fewer; it may be null if `capacity` is zero.
 */
weald_code weald_tree_versions(weald_tree tree,
                               weald_tree_version *versions,
                               size_t capacity,
                               size_t *count);

/**
 * The versions among them in which a node was added, changed, moved or deleted, the newest first. Results are as in
 * weald_tree_versions.
 */
weald_code weald_tree_history(weald_tree tree,
                              weald_node node,
                              weald_tree_version *versions,
                              size_t capacity,
                              size_t *count);

/**
 * Makes a version with the nodes of an older one, which keep their numbers. The versions between stay. `made`, which
 * may be null, gets the new version. WEALD_MISSING if the older one does not exist, or memory no longer keeps it.
 */
weald_code weald_tree_restore(weald_tree tree,
                              const weald_tree_version *version,
                              weald_tree_version *made);

/**
 * Begins an edit that takes back what one commit did to a tree: the one that made `version`, or the tree's newest
 * version up to it. What others did since stays; where they have changed the same, the commit of the edit is a
 * WEALD_CONFLICT. The edit of an undo's version is a redo. WEALD_MISSING if memory keeps the version, or the one
 * before it, no longer.
 */
weald_code weald_tree_revert(weald_tree tree,
                             const weald_tree_version *version,
                             weald_edit *edit);

/**
 * Gives a version of a tree a tag, or the newest version if `version` is null. The version is kept until the tag is
 * removed. A tag that exists moves.
 */
weald_code weald_tree_tag(weald_tree tree,
                          const char *tag,
                          const weald_tree_version *version);

/**
 * Removes a tag, if it exists.
 */
weald_code weald_tree_untag(weald_tree tree, const char *tag);

/**
 * A view of the version that has a tag. WEALD_MISSING if none has it.
 */
weald_code weald_tree_tagged(weald_tree tree, const char *tag, weald_view *view);

/**
 * The tags of a tree, sorted, each with a newline behind it, which no tag contains.
 */
weald_code weald_tree_tags(weald_tree tree, weald_bytes *tags);

/**
 * Gives an attribute an index, in all versions of a tree from now on; does nothing if it has one. With it a look for
 * values of this attribute takes time for what it finds, and without it for all nodes.
 */
weald_code weald_tree_add_index(weald_tree tree,
                                const char *attribute);

/**
 * Removes the index of an attribute, if it has one, from all versions from now on.
 */
weald_code weald_tree_drop_index(weald_tree tree, const char *attribute);

/**
 * The nodes of a view that a query asks for, sorted by the value of the attribute, and then by their numbers. `count`
 * gets how many it finds, and `nodes` the first `capacity` of them, or fewer; it may be null if `capacity` is zero. It
 * finds none if the version does not have the node `under`.
 */
weald_code weald_view_find(weald_view view,
                           const weald_query *query,
                           weald_node *nodes,
                           size_t capacity,
                           size_t *count);

/**
 * The same for an edit, with what it has changed. The read counts: a commit that changes a node in which the query has
 * looked meanwhile conflicts. WEALD_MISSING if the edit does not have the node `under`.
 */
weald_code weald_edit_find(weald_edit edit,
                           const weald_query *query,
                           weald_node *nodes,
                           size_t capacity,
                           size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEALD_H */

/* Made by `cargo xtask header`. The digest of its sources and of the lines above: f1bbea177ac3023d. */
