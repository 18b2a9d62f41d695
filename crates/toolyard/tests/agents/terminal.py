"""Runs a program at a terminal and answers what it asks: terminal.py ANSWERS PROGRAM WORDS…

ANSWERS is a JSON list of [wanted, answer]: once `wanted` was shown, `answer` is typed. Prints everything that was
shown, then the exit code in a line of its own.
"""

import fcntl, json, os, pty, select, struct, sys, termios, time

answers = json.loads(sys.argv[1])
number, terminal = pty.fork()
if number == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
shown, seen, end = b"", 0, time.monotonic() + 60
while time.monotonic() < end:
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    elif answers and answers[0][0].encode() in shown[seen:]:
        # Only what comes after an answer is looked at for the next.
        seen = len(shown)
        os.write(terminal, answers.pop(0)[1].encode())
sys.stdout.buffer.write(shown)
print(f"\nexit {os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])}")
