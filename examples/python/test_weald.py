"""Tests of the module `weald`; `cargo test -p weald-c --test python` runs them."""

import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import weald


class Processes(unittest.TestCase):
    def test_a_process_answers_until_it_is_told_to_end(self):
        answers = weald.Channel(None)

        def double():
            count = 0
            while True:
                message = weald.receive()
                if not message:
                    return count
                count += 1
                answers.send(message * 2)

        process = weald.spawn(double, name="doubler")
        for word in (b"a", b"bc"):
            process.send(word)
        self.assertEqual([answers.receive(), answers.receive()], [b"aa", b"bcbc"])
        process.send(b"")
        self.assertEqual(process.wait(), 2)
        with self.assertRaises(weald.Closed):
            process.send(b"late")

    def test_many_processes_wait_at_once(self):
        ends = weald.Channel(None)

        def waits(number):
            weald.receive()
            ends.send(b"%d" % number)

        processes = [weald.spawn(waits, number) for number in range(50)]
        for process in processes:
            process.send(b"go")
        ended = {int(ends.receive()) for _ in processes}
        self.assertEqual(ended, set(range(50)))

    def test_a_process_that_is_cancelled_finds_no_more_messages(self):
        seen = weald.Channel(None)

        def waits():
            seen.send(b"waits")
            try:
                weald.receive()
            except weald.Cancelled:
                seen.send(b"cancelled")
                raise

        process = weald.spawn(waits)
        self.assertEqual(seen.receive(), b"waits")
        process.cancel()
        self.assertIsNone(process.wait())
        self.assertEqual(seen.receive(), b"cancelled")

    def test_ends_are_messages(self):
        def watches():
            weald.trap_exits(b"exit")
            linked = weald.spawn(lambda: int(weald.receive()))
            linked.link()
            linked.monitor(b"down")
            linked.send(b"7")
            seen = {message[:4]: weald.notice(message) for message in (weald.receive(), weald.receive())}
            if seen == {b"exit": (linked.number(), 7), b"down": (linked.number(), 7)}:
                return 1

        self.assertEqual(weald.spawn(watches).wait(), 1)

    def test_linked_processes_end_together(self):
        linked = weald.Channel(None)
        other = weald.spawn(weald.receive)

        def links():
            other.link()
            linked.send(b"")
            weald.receive()

        process = weald.spawn(links)
        linked.receive()
        other.cancel()
        self.assertIsNone(process.wait())

    def test_names(self):
        process = weald.spawn(lambda: int(weald.receive()))
        process.register("python")
        weald.find("python").send(b"7")
        self.assertEqual(process.wait(), 7)
        with self.assertRaises(weald.Missing):
            weald.find("python")

    def test_a_program_ends_while_its_processes_run(self):
        program = """
import weald
def receives():
    while True:
        try:
            weald.receive(0.0001)
        except weald.TimedOut:
            pass
for _ in range(20):
    weald.spawn(receives)
"""
        for _ in range(3):
            ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True)
            # On a machine that is busy any unit may seem to compute.
            errors = [line for line in ended.stderr.splitlines() if b"has blocked or computed" not in line]
            self.assertEqual((ended.returncode, errors), (0, []))

    def test_a_child_of_fork_ends_while_the_processes_of_its_parent_run(self):
        program = """
import os, sys, warnings
warnings.simplefilter("ignore")
import weald
process = weald.spawn(weald.receive)
weald._lock.acquire() # As another thread may have it at this moment.
child = os.fork()
if child == 0:
    try:
        process.send(b"from the child")
    except RuntimeError:
        sys.exit(7)
weald._lock.release()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, timeout=60)
        self.assertEqual(ended.returncode, 7, ended.stderr)

    def test_a_child_of_fork_in_a_process_ends_with_its_function(self):
        program = """
import os, sys, warnings
warnings.simplefilter("ignore")
import weald
def forks(fails):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("from the child")
    if fails:
        raise ValueError("on purpose")
codes = [weald.spawn(forks, fails).wait(60) for fails in (False, True)]
sys.exit(0 if codes == [0, 1] else 9)
"""
        ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stdout, b"from the child\n" * 2)
        self.assertTrue(ended.stderr.endswith(b"ValueError: on purpose\n"), ended.stderr)
        self.assertNotIn(b"KeyError", ended.stderr)

    def test_outside_of_processes_there_are_no_messages(self):
        with self.assertRaises(weald.Error):
            weald.receive(0)


class Examples(unittest.TestCase):
    def test_the_first_program_of_the_book(self):
        ended = subprocess.run([sys.executable, "-B", "first.py"], capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, b"[2, 4, 6]\n"), ended.stderr)


class Channels(unittest.TestCase):
    def test_a_wait_lets_other_threads_of_python_run(self):
        channel = weald.Channel()
        thread = threading.Thread(target=lambda: channel.send(b"from a thread"))
        thread.start()
        self.assertEqual(channel.receive(), b"from a thread")
        thread.join()

    def test_limits_and_the_end(self):
        channel = weald.Channel(1)
        with self.assertRaises(weald.TimedOut):
            channel.receive(0.001)
        with self.assertRaises(weald.TimedOut):
            channel.receive(-0.001)
        threading.Timer(0.001, channel.send, [b"in time"]).start()
        self.assertEqual(channel.receive(1e10), b"in time")
        channel.send(b"last")
        with self.assertRaises(weald.TimedOut):
            channel.send(b"too many", 0)
        channel.close()
        self.assertEqual(list(channel), [b"last"])


class Forests(unittest.TestCase):
    def test_commits_views_and_a_watch(self):
        with tempfile.TemporaryDirectory() as directory:
            forest = weald.Forest(directory)
            notes = forest.create("notes")
            watch = notes.watch()
            edit = notes.edit()
            node = edit.append(edit.root(), text=b"hello")
            version = edit.commit()
            seen, view = watch.next()
            self.assertEqual(seen.number, version.number)
            self.assertEqual(view.get(node, "text"), b"hello")
            edit = notes.edit()
            edit.put(node, "text", b"changed")
            edit_version = edit.commit()
            self.assertEqual(notes.view().get(node, "text"), b"changed")
            notes.tag("first", version)
            undone = notes.revert(edit_version).commit()
            self.assertEqual(notes.view().get(node, "text"), b"hello")
            notes.revert(undone).commit()
            self.assertEqual(notes.tagged("first").get(node, "text"), b"hello")
            self.assertEqual(notes.view(version).get(node, "text"), b"hello")
            forest.close()
            del watch, notes
            again = weald.Forest(directory)
            self.assertEqual(again.names(), ["notes"])
            view = again.get("notes").view()
            self.assertEqual(view.children(view.root()), [node])
            self.assertEqual(view.get(node, "text"), b"changed")
            with self.assertRaises(weald.Missing):
                view.get(node, "none")
            again.close()

    def test_a_commit_or_a_close_that_was_refused_keeps_its_handle(self):
        forest = weald.Forest()
        tree = forest.create("notes")
        edit = tree.edit()
        edit.append(edit.root(), text=b"hello")
        for error in (weald.Busy(7, "another call uses it"), weald.Cancelled(6, "cancelled before")):
            for name, call in (("weald_edit_commit", edit.commit), ("weald_forest_close", forest.close)):
                with unittest.mock.patch.object(weald._library, name, side_effect=error):
                    with self.assertRaises(type(error)):
                        call()
        self.assertGreater(edit.commit().number, 0)
        with self.assertRaises(weald.Error):
            edit.commit()
        forest.close()
        with self.assertRaises(weald.Error):
            forest.names()


if __name__ == "__main__":
    unittest.main()
