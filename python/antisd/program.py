"""Finds the program and runs its commands."""
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import threading


class ProgramError(RuntimeError):
    """A command that failed: its message, and its exit status in `status`.

    The status is 1 for what failed while running, 2 for bad usage, configuration or input, 130 for
    a run that a signal stopped after it saved, and -N for a program that signal N ended.
    """

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def find_program():
    """The path of `antisd`: ANTISD_PROGRAM, else the one installed with this module, else of PATH."""
    named = os.environ.get("ANTISD_PROGRAM")
    if named:
        return named
    try:
        files = importlib.metadata.files("antisd") or []
    except importlib.metadata.PackageNotFoundError:  # a source tree
        files = []
    for file in files:
        if file.name == "antisd" and file.parent.name == "bin" and file.locate().exists():
            return str(file.locate().resolve())
    found = shutil.which("antisd")
    if found is None:
        raise FileNotFoundError(
            "the program antisd was not found: install the wheel, or name it in ANTISD_PROGRAM")
    return found


def run(arguments, input=None, cwd=None):
    """Runs `antisd ARGUMENTS` to its end and returns what it wrote to standard output.

    Its standard error is shown as it comes. `input` is text for its standard input, which is empty
    otherwise. Raises ProgramError with the program's message if it fails. Ctrl-C is passed on once,
    so that the program saves what it has; a second one ends it.
    """
    command = [find_program(), *map(str, arguments)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                             text=True, encoding="utf-8", errors="replace",
                             start_new_session=True)  # Ctrl-C reaches it through us, once
    last = []  # the last lines of standard error: a message is at the end

    def show_errors():
        for line in child.stderr:
            sys.stderr.write(line)
            sys.stderr.flush()
            last.append(line)
            del last[:-20]

    def write_input():
        try:
            with child.stdin:
                child.stdin.write(input)
        except BrokenPipeError:  # it ended before it had read everything, and says why
            pass

    threads = [threading.Thread(target=show_errors, daemon=True)]
    if input is not None:
        threads.append(threading.Thread(target=write_input, daemon=True))
    for thread in threads:
        thread.start()
    try:
        output = child.stdout.read()
        status = child.wait()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        try:
            child.stdout.read()
            child.wait()
        except KeyboardInterrupt:
            child.kill()
        raise
    for thread in threads:
        thread.join()
    child.stdout.close()
    child.stderr.close()
    if status != 0:
        raise ProgramError(_message(last, status), status)
    return output


def _message(lines, status):
    """The program's own message among its last lines."""
    for line in reversed(lines):
        if line.startswith("antisd: "):
            return line[len("antisd: "):].rstrip("\n")
    if status < 0:
        return f"antisd was ended by signal {-status}"
    return "".join(lines).strip() or f"antisd ended with status {status}"
