"""Weald for Python, over libweald by ctypes: processes, channels, the forest.

CPython keeps the state of its frames with the OS thread. So each process here has an OS thread of its own
(WEALD_OWN_THREAD), and a call that waits releases the interpreter's lock, as ctypes does at each call: other Python
threads and processes run meanwhile.

At the end of the program the processes that still run are cancelled. One that does not return within 5 s, since it
computes, or waits for something else than its messages, may abort the program.

A child process of os.fork must not use the module, unless it calls exec: the OS threads of Weald are not in it. A
child that the function of a process makes ends when this function ends.

The shared library is found by the name in the variable WEALD_LIBRARY, else as libweald.so.0.
"""

import atexit
import ctypes
import itertools
import os
import struct
import sys
import threading
import time
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

FOREVER = None
# Some 292 years: the largest number of nanoseconds for C of which a float has no larger neighbour that is too large.
_LONGEST = 2**63 - 1024
_library = ctypes.CDLL(os.environ.get("WEALD_LIBRARY", "libweald.so.0"))


class _Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]


class _Exit(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("code", c_int32)]


class Version(ctypes.Structure):
    """A version of a forest."""

    _fields_ = [("incarnation", c_uint64), ("number", c_uint64)]


class _SpawnOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("runtime", c_uint64),
        ("stack_size", c_size_t),
        ("flags", c_uint32),
        ("name", c_char_p),
    ]


_ProcessFunction = ctypes.CFUNCTYPE(c_int32, c_void_p)

_library.weald_code_text.restype = c_char_p
_library.weald_last_error.restype = c_char_p

_ARGUMENTS = {
    "weald_release": [c_uint64],
    "weald_bytes_free": [POINTER(_Bytes)],
    "weald_process_spawn": [POINTER(_SpawnOptions), _ProcessFunction, c_void_p, POINTER(c_uint64)],
    "weald_process_self": [POINTER(c_uint64)],
    "weald_process_send": [c_uint64, c_char_p, c_size_t],
    "weald_process_receive": [c_int64, POINTER(_Bytes)],
    "weald_process_cancel": [c_uint64],
    "weald_process_wait": [c_uint64, c_int64, POINTER(_Exit)],
    "weald_process_link": [c_uint64],
    "weald_process_number": [c_uint64, POINTER(c_uint64)],
    "weald_process_trap_exits": [c_char_p, c_size_t],
    "weald_process_monitor": [c_uint64, c_char_p, c_size_t, POINTER(c_uint64)],
    "weald_process_register": [c_uint64, c_char_p],
    "weald_process_find": [c_char_p, POINTER(c_uint64)],
    "weald_channel_create": [c_size_t, POINTER(c_uint64)],
    "weald_channel_send": [c_uint64, c_char_p, c_size_t, c_int64],
    "weald_channel_receive": [c_uint64, c_int64, POINTER(_Bytes)],
    "weald_channel_close": [c_uint64],
    "weald_forest_open": [c_char_p, POINTER(c_uint64)],
    "weald_forest_close": [c_uint64],
    "weald_forest_names": [c_uint64, POINTER(_Bytes)],
    "weald_forest_create": [c_uint64, c_char_p, POINTER(c_uint64)],
    "weald_forest_get": [c_uint64, c_char_p, POINTER(c_uint64)],
    "weald_tree_view": [c_uint64, POINTER(Version), POINTER(c_uint64)],
    "weald_tree_tag": [c_uint64, c_char_p, POINTER(Version)],
    "weald_tree_tagged": [c_uint64, c_char_p, POINTER(c_uint64)],
    "weald_tree_revert": [c_uint64, POINTER(Version), POINTER(c_uint64)],
    "weald_tree_watch": [c_uint64, POINTER(Version), POINTER(c_uint64)],
    "weald_watch_next": [c_uint64, c_int64, POINTER(Version), POINTER(c_uint64)],
    "weald_view_root": [c_uint64, POINTER(c_uint64)],
    "weald_view_children": [c_uint64, c_uint64, POINTER(c_uint64), c_size_t, POINTER(c_size_t)],
    "weald_view_get": [c_uint64, c_uint64, c_char_p, POINTER(_Bytes)],
    "weald_edit_begin": [c_uint64, c_uint64, POINTER(c_uint64)],
    "weald_edit_root": [c_uint64, POINTER(c_uint64)],
    "weald_edit_add": [c_uint64, c_int32, c_uint64, POINTER(c_uint64)],
    "weald_edit_delete": [c_uint64, c_uint64],
    "weald_edit_put": [c_uint64, c_uint64, c_char_p, c_char_p, c_size_t],
    "weald_edit_commit": [c_uint64, c_int32, POINTER(Version)],
}


class Error(Exception):
    """A call has failed: its code, and a sentence."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


class TimedOut(Error):
    """The time limit passed."""


class Closed(Error):
    """The channel is closed, the process has ended, or nothing more will come."""


class Cancelled(Error):
    """The calling process was cancelled: let its function return."""


class Missing(Error):
    """There is nothing of this name or number."""


class Busy(Error):
    """Another call uses the object, or receives for the process."""


_ERRORS = {4: TimedOut, 5: Closed, 6: Cancelled, 7: Busy, 12: Missing}


def _declare(name, arguments):
    function = getattr(_library, name)
    function.argtypes = arguments
    if name == "weald_bytes_free":
        function.restype = None
        return

    def check(code, _function, _arguments):
        if code != 0:
            sentence = _library.weald_last_error().decode()
            raise _ERRORS.get(code, Error)(code, sentence)

    function.restype = c_int32
    function.errcheck = check


for _name, _arguments in _ARGUMENTS.items():
    _declare(_name, _arguments)


def _limit(seconds):
    """Nanoseconds for C, where a negative number means without a limit. A deadline that has passed is a limit of zero."""
    if seconds is None:
        return -1
    return int(min(max(0, seconds * 1e9), _LONGEST))


def _handle(function, *arguments):
    handle = c_uint64()
    function(*arguments, byref(handle))
    return handle.value


def _taken(function, *arguments):
    """The bytes that a function returns, copied and freed."""
    found = _Bytes()
    function(*arguments, byref(found))
    try:
        return ctypes.string_at(found.data, found.length)
    finally:
        _library.weald_bytes_free(byref(found))


class _Object:
    """What a handle stands for. Released when nobody has it any longer."""

    def __init__(self, handle):
        self._handle = handle

    def release(self):
        handle, self._handle = self._handle, 0
        if handle:
            _library.weald_release(handle)

    def _given_up(self, function, *arguments):
        """Calls a function that takes the handle, unless it refuses because another call uses it, or because the caller
        was cancelled before."""
        try:
            function(self._handle, *arguments)
        except Error as error:
            if not isinstance(error, (Busy, Cancelled)):
                self._handle = 0
            raise
        self._handle = 0

    def __del__(self):
        # At the end of the interpreter nothing is left to release with, and in a child process nothing is to be.
        if getattr(self, "_handle", 0) and isinstance(_library, ctypes.CDLL):
            self.release()


class Process(_Object):
    """A process of Weald."""

    def send(self, message):
        """Sends bytes. Never waits."""
        _library.weald_process_send(self._handle, message, len(message))

    def cancel(self):
        _library.weald_process_cancel(self._handle)

    def wait(self, seconds=FOREVER):
        """Waits for the end: the number that its function returned, or None if it was cancelled."""
        ended = _Exit()
        _library.weald_process_wait(self._handle, _limit(seconds), byref(ended))
        return ended.code if ended.kind == 0 else None

    def link(self):
        """Links the calling process with this one: if one is cancelled, or returns a number other than 0, the other is
        cancelled, too."""
        _library.weald_process_link(self._handle)

    def monitor(self, own=b""):
        """Lets the calling process receive a message when this one ends: `own`, and behind it what `notice` reads."""
        _library.weald_process_monitor(self._handle, own, len(own), None)

    def number(self):
        """Its number, which notices name."""
        return _handle(_library.weald_process_number, self._handle)

    def register(self, name):
        _library.weald_process_register(self._handle, name.encode())


# What processes that have not begun will call, by the context that C passes on.
_to_call = {}
_contexts = itertools.count(1)


# The processes that run, by the number of their OS threads.
_running = {}
_lock = threading.Lock()
_program_ends = False


def _call(context):
    with _lock:
        function, arguments = _to_call.pop(context)
        if _program_ends:
            return 0
        _running[threading.get_ident()] = current()
    program = os.getpid()
    try:
        return function(*arguments) or 0
    except Cancelled:
        return 0
    finally:
        if os.getpid() != program:
            _end_child(sys.exc_info()[1])
        del _running[threading.get_ident()]
        # What ends with them may call the library, so that ends before this frame, for which the program waits.
        del function, arguments


def _end_child(error):
    """Ends a child process of os.fork in which the function of a process has ended: the frames of C below it would go on
    without the OS threads that they need."""
    code = 0 if error is None else 1
    try:
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        # Also if nobody reads its last words.
        os._exit(code & 255)


_run = _ProcessFunction(_call)


def _is_running():
    """Whether a process has not begun, or has a frame of Python: after that it does not come back to the interpreter."""
    if _to_call:
        return True
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code is _call.__code__:
                return True
            frame = frame.f_back
    return False


@atexit.register
def _end_processes():
    """Cancels the processes that run, and waits until their functions have returned, for 5 s at most.

    An OS thread that comes back to an interpreter which has ended is ended in the midst of its C frames, and those of
    Weald abort the program then.
    """
    global _program_ends
    end = time.monotonic() + 5
    with _lock:
        _program_ends = True
        running = list(_running.values())
    for process in running:
        process.cancel()
    while _is_running() and time.monotonic() < end:
        time.sleep(0.001)


class _InAChild:
    """What a child process of os.fork has in place of the library."""

    def __getattr__(self, _name):
        raise RuntimeError("a child process of os.fork cannot use Weald; start another program in it")


def _forget():
    """The processes are the parent's, and so may be the lock: their OS threads are not in the child."""
    global _library, _lock
    _library = _InAChild()
    _lock = threading.Lock()
    _to_call.clear()
    _running.clear()


os.register_at_fork(after_in_child=_forget)


def spawn(function, *arguments, name=None):
    """Runs a function as a process, on an OS thread of its own. What it returns, a number or None, is its code."""
    context = next(_contexts)
    _to_call[context] = (function, arguments)
    options = _SpawnOptions(ctypes.sizeof(_SpawnOptions), 0, 0, 1, name.encode() if name else None)
    try:
        return Process(_handle(_library.weald_process_spawn, byref(options), _run, context))
    except Error:
        del _to_call[context]
        raise


def receive(seconds=FOREVER):
    """Receives the oldest message of the calling process."""
    return _taken(_library.weald_process_receive, _limit(seconds))


def trap_exits(own=b""):
    """From now on the end of a linked process is a message: `own`, and behind it what `notice` reads."""
    _library.weald_process_trap_exits(own, len(own))


def notice(message):
    """What the end of a message tells: the number of a process, and the number that it returned, or None."""
    number, kind, code = struct.unpack("=Qii", message[-16:])
    return number, code if kind == 0 else None


def current():
    """The calling process."""
    return Process(_handle(_library.weald_process_self))


def find(name):
    """The process of a name."""
    return Process(_handle(_library.weald_process_find, name.encode()))


class Channel(_Object):
    """A channel of bytes: 0 for a rendezvous, None for one without a bound."""

    def __init__(self, capacity=0):
        capacity = c_size_t(-1).value if capacity is None else capacity
        super().__init__(_handle(_library.weald_channel_create, capacity))

    def send(self, message, seconds=FOREVER):
        _library.weald_channel_send(self._handle, message, len(message), _limit(seconds))

    def receive(self, seconds=FOREVER):
        return _taken(_library.weald_channel_receive, self._handle, _limit(seconds))

    def close(self):
        _library.weald_channel_close(self._handle)

    def __iter__(self):
        try:
            while True:
                yield self.receive()
        except Closed:
            pass


class Forest(_Object):
    """A forest in a directory, or in memory."""

    def __init__(self, directory=None):
        path = None if directory is None else os.fsencode(directory)
        super().__init__(_handle(_library.weald_forest_open, path))

    def close(self):
        self._given_up(_library.weald_forest_close)

    def names(self):
        return _taken(_library.weald_forest_names, self._handle).decode().splitlines()

    def create(self, name):
        return Tree(_handle(_library.weald_forest_create, self._handle, name.encode()))

    def get(self, name):
        return Tree(_handle(_library.weald_forest_get, self._handle, name.encode()))


class Tree(_Object):
    """A tree of a forest."""

    def view(self, version=None):
        at = None if version is None else byref(version)
        return View(_handle(_library.weald_tree_view, self._handle, at))

    def edit(self):
        return Edit(_handle(_library.weald_edit_begin, self._handle, 0))

    def revert(self, version):
        """An edit that takes back what the commit did that made a version."""
        return Edit(_handle(_library.weald_tree_revert, self._handle, byref(version)))

    def tag(self, name, version=None):
        """Names a version, the newest one by default. It is kept as long as it has the name."""
        at = None if version is None else byref(version)
        _library.weald_tree_tag(self._handle, name.encode(), at)

    def tagged(self, name):
        """The version of that name."""
        return View(_handle(_library.weald_tree_tagged, self._handle, name.encode()))

    def watch(self, since=None):
        at = None if since is None else byref(since)
        return Watch(_handle(_library.weald_tree_watch, self._handle, at))


class View(_Object):
    """A version of a tree."""

    def root(self):
        return _handle(_library.weald_view_root, self._handle)

    def children(self, node):
        count = c_size_t()
        _library.weald_view_children(self._handle, node, None, 0, byref(count))
        room = (c_uint64 * count.value)()
        _library.weald_view_children(self._handle, node, room, count.value, byref(count))
        return list(room)

    def get(self, node, name):
        return _taken(_library.weald_view_get, self._handle, node, name.encode())


class Edit(_Object):
    """A private version of a tree."""

    def root(self):
        return _handle(_library.weald_edit_root, self._handle)

    def append(self, parent, **attributes):
        node = _handle(_library.weald_edit_add, self._handle, 1, parent)
        for name, value in attributes.items():
            self.put(node, name, value)
        return node

    def put(self, node, name, value):
        _library.weald_edit_put(self._handle, node, name.encode(), value, len(value))

    def delete(self, node):
        _library.weald_edit_delete(self._handle, node)

    def commit(self):
        """Commits, and returns the version. The edit is gone afterwards, unless it was Busy, or the caller Cancelled."""
        version = Version()
        self._given_up(_library.weald_edit_commit, 0, byref(version))
        return version


class Watch(_Object):
    """The commits of a tree, as they are made."""

    def next(self, seconds=FOREVER):
        """Waits for the next commit: its version, and a view of the tree as it left it."""
        version = Version()
        view = c_uint64()
        _library.weald_watch_next(self._handle, _limit(seconds), byref(version), byref(view))
        return version, View(view.value)
