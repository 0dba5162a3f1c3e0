"""Scratch folders on real file systems, for everything that must behave the same on each of them.

    with FileSystems(["ext4", "btrfs"]) as systems:
        systems["btrfs"].path      # a folder on btrfs, or None with .reason saying why there is none

ext4 is the temporary folder itself when that is ext4; ext4-image is one of its own. The others are a tmpfs
mount and sparse loop images. Nothing outlives the process: images are unlinked as soon as the loop device holds them, loop
devices detach themselves with their mount, and mounts are undone on leaving. enter_private_mounts()
makes that true even after SIGKILL.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("ext4", "tmpfs", "btrfs", "xfs")
IMAGE_BYTES = 4 << 30  # sparse: room for the tests with files of 1 GiB
PRIVATE_MARK = "SANDGLASS_PRIVATE_MOUNTS"

MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}


class Unavailable(Exception):
    """This machine cannot give us that file system; the text says why."""


class Place:
    """One file system: a folder on it, or the reason why there is none."""

    def __init__(self, name, path=None, reason=""):
        self.name = name
        self.path = path
        self.reason = reason


def enter_private_mounts():
    """Re-executes the program in its own mount namespace, so that the kernel itself undoes its mounts."""
    if os.geteuid() != 0 or os.environ.get(PRIVATE_MARK) or not shutil.which("unshare"):
        return
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        return
    os.environ[PRIVATE_MARK] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def run(*command):
    """Runs a system tool; Unavailable with its own words when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unavailable(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"{command[0]} failed: {words[-1] if words else done.returncode}")
    return done.stdout.strip()


def type_of(path):
    """The file system type below `path` as the kernel's mount table names it."""
    return run("findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(path))


class FileSystems:
    """Context manager: a mapping from file system name to Place."""

    def __init__(self, names=NAMES, base=None):
        self._names = names
        self._base = Path(base or os.environ.get("TMPDIR") or "/tmp")
        self._root = None
        self._mounts = []
        self._folders = []
        self._places = {}

    def __enter__(self):
        self._root = Path(tempfile.mkdtemp(prefix="sandglass-fs-", dir=self._base))
        # Tests drop privileges; they must be able to walk down to their own folders.
        self._root.chmod(0o755)
        try:
            for name in self._names:
                self._places[name] = self._open(name)
        except BaseException:
            self._close()
            raise
        return self._places

    def __exit__(self, *_):
        self._close()

    def _open(self, name):
        try:
            if name == "ext4":
                return Place(name, self._open_ext4())
            if name == "tmpfs":
                return Place(name, self._open_tmpfs())
            if name == "ext4-image":
                return Place(name, self._open_image("ext4", name))
            if name in MKFS:
                return Place(name, self._open_image(name))
        except Unavailable as why:
            return Place(name, reason=str(why))
        return Place(name, reason=f"unknown file system {name}")

    def _mount_point(self, name):
        point = self._root / name
        point.mkdir(mode=0o755)
        return point

    def _open_ext4(self):
        if type_of(self._base) == "ext4":
            return self._mount_point("ext4")
        return self._open_image("ext4")

    def _open_tmpfs(self):
        if os.geteuid() == 0:
            point = self._mount_point("tmpfs")
            run("mount", "-t", "tmpfs", "-o", "mode=0755,size=3g", "sandglass-test", str(point))
            self._mounts.append(point)
            return point
        if not os.path.isdir("/dev/shm") or type_of("/dev/shm") != "tmpfs":
            raise Unavailable("no tmpfs: not root, and /dev/shm is none")
        folder = Path(tempfile.mkdtemp(prefix="sandglass-fs-", dir="/dev/shm"))
        self._folders.append(folder)
        return folder

    def _open_image(self, name, folder=None):
        if os.geteuid() != 0:
            raise Unavailable("no loop device: not root")
        if not os.path.exists("/dev/loop-control"):
            raise Unavailable("no loop device: the kernel offers none")
        image = self._root / f"{name}.img"
        try:
            with open(image, "wb") as file:
                file.truncate(IMAGE_BYTES)
            run(*MKFS[name], str(image))
            try:
                device = run("losetup", "--find", "--show", str(image))
            except Unavailable as why:
                raise Unavailable(f"no loop device: {why}") from why
        finally:
            image.unlink(missing_ok=True)
        try:
            point = self._mount_point(folder or name)
            run("mount", "-t", name, device, str(point))
            self._mounts.append(point)
            point.chmod(0o755)
            return point
        finally:
            # Detaching a mounted device only marks it: it goes away together with the mount.
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)

    def _close(self):
        for point in reversed(self._mounts):
            unmount(point)
        self._mounts.clear()
        for folder in [*self._folders, self._root]:
            remove_tree(folder)


def unmount(point):
    """Undoes a mount; one that is still in use goes away with its last user."""
    for _ in range(10):
        if subprocess.run(["umount", str(point)], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "--lazy", str(point)], capture_output=True, check=False)


def remove_tree(folder):
    """Removes what tests left, also below folders that they made unwritable or immutable."""
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    if os.geteuid() == 0:
        subprocess.run(["chattr", "-R", "-f", "-ia", str(folder)], capture_output=True, check=False)
    for parent, folders, _ in os.walk(folder):
        for name in [parent, *(os.path.join(parent, f) for f in folders)]:
            try:
                os.chmod(name, 0o700, follow_symlinks=False)
            except (OSError, NotImplementedError):
                pass
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        # Paths longer than PATH_MAX defeat rmtree by name; rm walks by descriptor.
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], capture_output=True, check=False)
