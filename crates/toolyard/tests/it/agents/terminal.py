"""Runs a program at a pseudo-terminal and types answers: terminal.py ANSWERS PROGRAM ARGUMENTS…

ANSWERS is a JSON list of [expected, answer]: once `expected` was written, `answer` is typed. Prints everything that was
written, then the exit code in a line of its own.
"""

import fcntl, json, os, pty, select, signal, struct, sys, termios, time

answers = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))  # 40 lines, 100 columns
output, searched, deadline = b"", 0, time.monotonic() + 60
while time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    elif answers and answers[0][0].encode() in output[searched:]:
        expected, answer = (text.encode() for text in answers.pop(0))
        # The next text is expected after this answer only; without an answer, after this text.
        searched = len(output) if answer else output.index(expected, searched) + len(expected)
        os.write(terminal, answer)
else:
    # A program that still waits would keep the test from ending.
    os.kill(pid, signal.SIGKILL)
sys.stdout.buffer.write(output)
print(f"\nexit {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
