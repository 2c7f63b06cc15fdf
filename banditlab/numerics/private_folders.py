"""Check that folders and files are private, because stored code is executed when it is loaded.

On systems without owners and modes (Windows) every folder counts as private.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for this user only, whatever the umask; raise an OSError on failure."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder == folder.parent:
            break
        folder = folder.parent
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            if not each.is_dir():
                raise


def exposed(folder: Path) -> str:
    """Return a few words on who else may write or replace a folder, or "" if nobody may.

    The check covers the folder and its parents, if they exist, because users who may write a parent without a sticky
    bit may rename the folder.
    """
    path = Path(os.path.realpath(folder))
    for each in (path, *path.parents):
        try:
            reason = open_to_others(os.stat(each), each, above=each != path)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"cannot be checked ({error.strerror})"
        if reason:
            return f"{each} {reason}"
    return ""


def is_private_file(descriptor: int) -> bool:
    """Return whether an open file is a regular file that is owned by this user or root, and that nobody else may write."""
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and not open_to_others(found, descriptor)


def open_to_others(found: os.stat_result, path: Path | int, *, above: bool = False) -> str:
    """Return a few words on who else may write a file or folder, or "" if nobody may.

    Parameters
    ----------
    found
        The result of `os.stat` or `os.lstat`.
    path
        The path or descriptor of the file or folder, for reading its access control list.
    above
        Whether the path is a parent of the folder to check. In a parent with a sticky bit, such as /tmp, users can
        rename only their own files.
    """
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({found.st_uid})"
    if above and found.st_mode & stat.S_ISVTX:  # others cannot rename files that they do not own, as in /tmp
        return ""
    by_group = found.st_mode & stat.S_IWGRP and (_has_list(path) or not _own_group(found.st_gid))
    if found.st_mode & stat.S_IWOTH or by_group:
        return f"may be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


@cache
def _own_group(group: int) -> bool:
    """Return whether a group is this user's private group, with the user's name and no other member."""
    import grp
    import pwd

    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    members = set(entry.gr_mem) | {other.pw_name for other in pwd.getpwall() if other.pw_gid == group}
    return user.pw_gid == group and entry.gr_name == user.pw_name and members <= {user.pw_name}


def _has_list(path: Path | int) -> bool:
    """Return whether a file has a Linux access control list, with which the mode's group bits are only an upper limit."""
    if not hasattr(os, "listxattr"):
        return False
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:  # a file system without extended attributes
        return False
