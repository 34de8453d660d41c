"""A command on a terminal of a given width, and the lines that are left on it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

ROWS = 50


def on_terminal(command, columns, folder=None):
    """The lines of a command on a terminal so wide; of a line that is rewritten, the longest state."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=folder) as process:
        os.close(follower)
        out = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break  # How a terminal says that nobody writes to it any more.
            if not piece:
                break
            out += piece
        process.wait(timeout=20)
    os.close(leader)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.decode().replace("\r\n", "\n"))
    return [max(line.split("\r"), key=len) for line in text.splitlines()]
