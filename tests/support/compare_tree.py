#!/usr/bin/env python3
"""Compares directory trees by everything that undo promises to restore.

    compare_tree.py snapshot DIR > before.json
    compare_tree.py diff before.json DIR      exit 0: equal; 1: one line per difference on stdout; 2: cannot tell

A second opinion on purpose: it shares no code with the C++ TreeSnapshot. Compared for each entry,
the root included: type, 12 mode bits, owner, mtime in nanoseconds, xattrs with ACLs, size and bytes
of regular files (a hole equals zeros), symlink target, device number, inode flags a user can set,
and which paths are one inode. Only reads.
"""
import errno
import fcntl
import hashlib
import json
import os
import stat
import sys

# A directory reached by a longer path is opened and becomes the base of what lies below it, so that
# no path handed to the kernel comes near PATH_MAX.
MAX_RELATIVE = 2000
BLOCK = 1 << 16
ZEROS = bytes(BLOCK)
DENIED = (errno.EACCES, errno.EPERM)
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

FS_IOC_GETFLAGS = 0x80086601 if sys.maxsize > 2**32 else 0x80046601
SETTABLE_FLAGS = (0x000000FF    # secrm unrm compr sync immutable append nodump noatime
                  | 0x0003C400  # nocomp journal notail dirsync topdir
                  | 0x62800000)  # nocow dax projinherit casefold

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket", stat.S_IFCHR: "char", stat.S_IFBLK: "block"}


class Base:
    """An open directory that lives as long as something below it is still to be visited."""

    def __init__(self, fd):
        self.fd = fd

    def __del__(self):
        os.close(self.fd)


def text(raw):
    return raw.decode("utf-8", "surrogateescape")


def open_for_reading(base, relative, extra=0):
    try:
        return os.open(relative, READ_FLAGS | os.O_NOATIME | extra, dir_fd=base.fd)
    except PermissionError as refused:
        if refused.errno != errno.EPERM:
            raise
        return os.open(relative, READ_FLAGS | extra, dir_fd=base.fd)


def next_data(fd, offset, size):
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) // BLOCK * BLOCK
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size
        if error.errno == errno.EINVAL:
            return offset
        raise


def digest(fd, size):
    """A digest of every aligned block that is not all zero, with its offset."""
    hasher = hashlib.blake2b(digest_size=16)
    offset = 0
    while offset < size:
        if size > BLOCK:
            offset = next_data(fd, offset, size)
            if offset >= size:
                break
        block = os.pread(fd, BLOCK, offset)
        if block != ZEROS[:len(block)]:
            hasher.update(b"%d:" % offset)
            hasher.update(block)
        offset += BLOCK
    return hasher.hexdigest()


def inode_flags(fd):
    try:
        raw = fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8))
    except OSError:
        return 0
    return int.from_bytes(raw[:4], sys.byteorder) & SETTABLE_FLAGS


def xattrs(base, relative):
    path = b"/proc/self/fd/%d/%s" % (base.fd, relative)
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    return {text(os.fsencode(name)): os.getxattr(path, name, follow_symlinks=False).hex() for name in names}


def facts_of(status):
    kind = stat.S_IFMT(status.st_mode)
    facts = {"type": TYPES[kind], "mode": "%04o" % stat.S_IMODE(status.st_mode), "uid": status.st_uid,
             "gid": status.st_gid, "mtime_ns": status.st_mtime_ns}
    if kind == stat.S_IFREG:
        facts["size"] = status.st_size
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        facts["device"] = "%d:%d" % (os.major(status.st_rdev), os.minor(status.st_rdev))
    return facts


def read_rest(facts, base, relative, status):
    """Adds what stat does not say; for a directory, returns the names in it."""
    facts["xattrs"] = xattrs(base, relative)
    if facts["type"] == "symlink":
        facts["target"] = text(os.readlink(relative, dir_fd=base.fd))
    if facts["type"] not in ("file", "dir"):
        return []
    fd = open_for_reading(base, relative)
    try:
        facts["flags"] = "%#x" % inode_flags(fd)
        if facts["type"] == "dir":
            return [os.fsencode(name) for name in os.listdir(fd)]
        facts["content"] = digest(fd, status.st_size)
        return []
    finally:
        os.close(fd)


def join(directory, name):
    return directory + b"/" + name if directory not in (b"", b".") else name


def children(base, relative, path, names):
    if names and len(relative) > MAX_RELATIVE:
        base, relative = Base(open_for_reading(base, relative, os.O_DIRECTORY)), b"."
    return [(base, join(relative, name), join(path, name)) for name in names]


def snapshot(root):
    """The tree at `root` as {path: {fact: value}}; the root has the path "". Holds only what JSON can."""
    entries = {}
    paths_of = {}
    base = Base(os.open(root, READ_FLAGS | os.O_DIRECTORY))
    pending = [(base, b".", b"")]
    while pending:
        base, relative, path = pending.pop()
        status = os.stat(relative, dir_fd=base.fd, follow_symlinks=False)
        facts = entries[text(path)] = facts_of(status)
        try:
            pending += children(base, relative, path, read_rest(facts, base, relative, status))
        except OSError as error:
            if error.errno not in DENIED:
                raise
            facts["unreadable"] = os.strerror(error.errno)
        if facts["type"] != "dir":
            paths_of.setdefault((status.st_dev, status.st_ino), []).append(text(path))
    for paths in paths_of.values():
        if len(paths) > 1:
            for path in paths:
                entries[path]["links"] = sorted(paths)
    return entries


def diff(before, after):
    """One line per difference between two snapshots. What could not be read is a difference."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            lines.append("%a: %s" % (path, "was not there" if old is None else "is gone"))
            continue
        for fact in sorted(old.keys() | new.keys()):
            if old.get(fact) != new.get(fact):
                lines.append("%a: %s %a -> %a" % (path, fact, old.get(fact), new.get(fact)))
            elif fact == "unreadable":
                lines.append("%a: cannot be compared in full: %s" % (path, old[fact]))
    return lines


def load(path):
    with open(path, encoding="ascii") as file:
        return json.load(file)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "snapshot":
        json.dump(snapshot(arguments[1]), sys.stdout)
        return 0
    if len(arguments) == 3 and arguments[0] == "diff":
        lines = diff(load(arguments[1]), snapshot(arguments[2]))
        for line in lines:
            print(line)
        return 1 if lines else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError) as failure:
        print("compare_tree.py: %a" % (failure,), file=sys.stderr)
        sys.exit(2)
