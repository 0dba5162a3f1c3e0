#!/usr/bin/env python3
"""Tests of compare_tree.py: each attribute is changed alone and must be the only difference."""
import fcntl
import os
import shutil
import socket
import stat
import struct
import tempfile
import time
import unittest

import compare_tree

OLD = 1_111_111_111_123_456_789
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
APPEND, IMMUTABLE, NODUMP, NOATIME = 0x20, 0x10, 0x40, 0x80


def write(path, data, mode="wb"):
    with open(path, mode) as file:
        file.write(data)


def write_at(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def add_flags(path, add, clear=0):
    fd = os.open(path, os.O_RDONLY)
    try:
        flags = struct.unpack("i", fcntl.ioctl(fd, FS_IOC_GETFLAGS, struct.pack("i", 0)))[0]
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("i", flags & ~clear | add))
    finally:
        os.close(fd)


def replace(path, make):
    os.unlink(path)
    make()


def relink(existing, path):
    os.unlink(path)
    os.link(existing, path)


# name: (change, {path: facts that must differ}); None instead of facts: the path exists on one side only.
CONTENT_CHANGES = {
    "created": (lambda: write("new", b""), {"new": None}),
    "deleted": (lambda: os.unlink("dir/child"), {"dir/child": None}),
    "renamed": (lambda: os.rename("dir/child", "dir/moved"), {"dir/child": None, "dir/moved": None}),
    "directory removed": (lambda: os.rmdir("empty"), {"empty": None}),
    "same size": (lambda: write_at("file", 6, b"T"), {"file": {"content"}}),
    "grown": (lambda: write("file", b"!", "ab"), {"file": {"content", "size"}}),
    "byte in a hole": (lambda: write_at("sparse", 900_000, b"x"), {"sparse": {"content"}}),
    "target": (lambda: replace("symlink", lambda: os.symlink("filf", "symlink")), {"symlink": {"target"}}),
    "type": (lambda: replace("fifo", lambda: write("fifo", b"")),
             {"fifo": {"type", "mode", "size", "content", "flags"}}),
    "link broken": (lambda: replace("link2", lambda: write("link2", b"linked")),
                    {"link1": {"links"}, "link2": {"links"}}),
    "link made": (lambda: relink("link1", "twin"), {"link1": {"links"}, "link2": {"links"}, "twin": {"links"}}),
}

METADATA_CHANGES = {
    "mode of file": (lambda: os.chmod("file", 0o4644), {"file": {"mode"}}),
    "mode of root": (lambda: os.chmod(".", 0o1755), {"": {"mode"}}),
    "mtime of file": (lambda: set_mtime("file", OLD + 1), {"file": {"mtime_ns"}}),
    "mtime of directory": (lambda: set_mtime("dir", OLD + 1), {"dir": {"mtime_ns"}}),
    "mtime of root": (lambda: set_mtime(".", OLD + 1), {"": {"mtime_ns"}}),
    "mtime of symlink": (lambda: set_mtime("symlink", OLD + 1), {"symlink": {"mtime_ns"}}),
    "uid": (lambda: os.chown("dir/child", 4242, -1), {"dir/child": {"uid"}}),
    "gid of symlink": (lambda: os.lchown("symlink", -1, 4242), {"symlink": {"gid"}}),
    "xattr": (lambda: os.setxattr("file", "user.b", b"\0\xff"), {"file": {"xattrs"}}),
    "xattr of directory": (lambda: os.setxattr("dir", "user.b", b""), {"dir": {"xattrs"}}),
    "xattr of symlink": (lambda: os.setxattr("symlink", "trusted.b", b"1", follow_symlinks=False),
                         {"symlink": {"xattrs"}}),
    "xattr of fifo": (lambda: os.setxattr("fifo", "trusted.b", b"1"), {"fifo": {"xattrs"}}),
    "default acl": (lambda: os.setxattr("dir", "system.posix_acl_default", acl()), {"dir": {"xattrs"}}),
    "append": (lambda: add_flags("file", APPEND), {"file": {"flags"}}),
    "immutable directory": (lambda: add_flags("dir", IMMUTABLE), {"dir": {"flags"}}),
    "nodump": (lambda: add_flags("file", NODUMP), {"file": {"flags"}}),
    "noatime": (lambda: add_flags("file", NOATIME), {"file": {"flags"}}),
}


def acl():
    entries = [(1, 6, 0xFFFFFFFF), (4, 4, 0xFFFFFFFF), (0x20, 4, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_mtime(path, when):
    os.utime(path, ns=(when, when), follow_symlinks=False)


def put_times_back():
    for directory, directories, files in os.walk("."):
        for name in directories + files:
            set_mtime(os.path.join(directory, name), OLD)
    set_mtime(".", OLD)


def one_of_each():
    os.mkdir("dir")
    os.mkdir("empty")
    write("file", b"content")
    write("dir/child", b"child")
    os.symlink("file", "symlink")
    os.mkfifo("fifo", 0o600)
    with open("sparse", "wb") as file:
        file.truncate(1_000_000)
    write("link1", b"linked")
    os.link("link1", "link2")
    write("twin", b"linked")
    put_times_back()


class TreeCase(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.root = os.path.join(self.top, "tree")
        os.mkdir(self.root, 0o755)
        self.before_directory = os.getcwd()
        os.chdir(self.root)
        os.umask(0o022)

    def tearDown(self):
        for name in ("file", "dir"):
            try:
                add_flags(name, 0, clear=APPEND | IMMUTABLE)
            except OSError:
                pass
        os.chdir(self.before_directory)
        shutil.rmtree(self.top)

    def differences(self, before):
        after = compare_tree.snapshot(self.root)
        found = {}
        for path in before.keys() | after.keys():
            if path not in before or path not in after:
                found[path] = None
                continue
            old, new = before[path], after[path]
            facts = {fact for fact in old.keys() | new.keys() if old.get(fact) != new.get(fact)}
            if facts:
                found[path] = facts
        lines = compare_tree.diff(before, after)
        self.assertEqual(len(lines), sum(1 if facts is None else len(facts) for facts in found.values()))
        return found

    def check(self, change, expected, after_change=lambda: None):
        one_of_each()
        before = compare_tree.snapshot(self.root)
        try:
            change()
        except OSError as refused:
            self.skipTest("refused by this file system or user: %s" % refused)
        after_change()
        self.assertEqual(self.differences(before), expected)


class Changes(TreeCase):
    """One test per line of the tables above; see load_tests."""


def add_tests(table, after_change):
    for name, (change, expected) in table.items():
        def test(self, change=change, expected=expected):
            self.check(change, expected, after_change)
        setattr(Changes, "test_" + name.replace(" ", "_"), test)


add_tests(CONTENT_CHANGES, put_times_back)
add_tests(METADATA_CHANGES, lambda: None)


class Behaviour(TreeCase):
    def test_untouched_tree_is_equal(self):
        one_of_each()
        self.assertEqual(compare_tree.diff(compare_tree.snapshot("."), compare_tree.snapshot(".")), [])

    def test_holes_equal_zeros(self):
        one_of_each()
        before = compare_tree.snapshot(".")
        write("sparse", bytes(1_000_000))
        put_times_back()
        self.assertEqual(self.differences(before), {})

    def test_every_mode_bit(self):
        write("file", b"")
        for bit in range(12):
            os.chmod("file", 0o644)
            before = compare_tree.snapshot(".")
            os.chmod("file", 0o644 ^ 1 << bit)
            self.assertIn("mode", self.differences(before)["file"])

    def test_special_files_are_not_opened(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            os.mkfifo("fifo")
            entries = compare_tree.snapshot(".")
        self.assertEqual((entries["socket"]["type"], entries["fifo"]["type"]), ("socket", "fifo"))

    def test_device_numbers(self):
        try:
            os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except OSError:
            self.skipTest("needs root")
        self.assertEqual(compare_tree.snapshot(".")["device"]["device"], "1:3")

    def test_names_that_are_no_text(self):
        write(b"new\nline\xff", b"")
        self.assertIn("new\nline\udcff", compare_tree.snapshot("."))

    def test_paths_longer_than_path_max(self):
        name = "d" * 250
        base = os.open(".", os.O_RDONLY)
        for _ in range(50):
            os.mkdir(name, dir_fd=base)
            below = os.open(name, os.O_RDONLY, dir_fd=base)
            os.close(base)
            base = below
        before = compare_tree.snapshot(".")
        self.assertEqual(max(map(len, before)), 50 * 251 - 1)
        os.mkdir("bottom", dir_fd=base)
        self.assertEqual(len(self.differences(before)), 2)
        os.close(base)

    def test_small_trees_take_milliseconds(self):
        for number in range(50):
            write("f%d" % number, b"x" * number)
        start = time.perf_counter()
        compare_tree.diff(compare_tree.snapshot("."), compare_tree.snapshot("."))
        # Ten times what it takes, since tests share the machine.
        self.assertLess(time.perf_counter() - start, 0.2)

    def test_snapshot_survives_json(self):
        write(b"odd\xff", b"")
        before = compare_tree.snapshot(".")
        path = os.path.join(self.top, "before.json")
        with open(path, "w", encoding="ascii") as file:
            compare_tree.json.dump(before, file)
        self.assertEqual(compare_tree.load(path), before)


if __name__ == "__main__":
    unittest.main(verbosity=1)
