# The zygote: waits inside the sandbox with the usual modules loaded and forks one process per
# program or test code. It reads only short commands from the grader, never a program, a test or an
# answer: its children inherit its memory.
import ctypes
import fcntl
import gc
import random
import resource
import select
import signal
import socket
import time

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
# READ_FILE | READ_DIR, WRITE_FILE | READ_FILE
LANDLOCK_READ, LANDLOCK_READ_WRITE_FILE = 0b1100, 0b0110
LANDLOCK_NEVER = 1 << 0 | 1 << 6 | 1 << 11  # EXECUTE, MAKE_CHAR, MAKE_BLOCK

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, what + ": " + os.strerror(error))
    return result


def landlock(config, writable):
    abi = config["landlock"]
    if abi < 1:
        return
    files = (1 << (13 if abi == 1 else 14 if abi == 2 else 15 if abi < 5 else 16)) - 1
    attributes = struct.pack("<QQQ", files, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = check(libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), 0), "landlock")
    allowed = [(path, LANDLOCK_READ) for path in config["readable"]]
    allowed += [(path, files & ~LANDLOCK_NEVER) for path in writable]
    allowed += [("/dev/null", LANDLOCK_READ_WRITE_FILE), ("/dev/zero", LANDLOCK_READ), ("/dev/urandom", LANDLOCK_READ)]
    for path, access in allowed:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not os.path.isdir(path):
            access &= ~0b1000
        check(libc.syscall(LANDLOCK_ADD, rules, 1, struct.pack("<Qi", access, parent), 0), "landlock rule for " + path)
        os.close(parent)
    check(libc.syscall(LANDLOCK_RESTRICT, rules, 0), "landlock restriction")
    os.close(rules)


def drop_capabilities():
    header, none = struct.pack("<Ii", 0x20080522, 0), bytes(24)
    check(libc.capset(header, none), "capset")


def limit(config, role):
    # The tests hold both the program's results and the expected ones, and may compute the latter.
    scale = 2 if role == "tests" else 1
    limits = ((resource.RLIMIT_AS, scale * config["memory"]), (resource.RLIMIT_CPU, scale * config["cpu"]),
              (resource.RLIMIT_FSIZE, config["file_bytes"]), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_CORE, 0),
              (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_SIGPENDING, 64))
    for which, value in limits:
        resource.setrlimit(which, (value, value))
    if config["confine"] == "namespaces":    # else it counts other processes too
        resource.setrlimit(resource.RLIMIT_NPROC, (config["processes"], config["processes"]))


def confine(config, role):
    """Drops every right that a program does not need. The order matters: Landlock forbids mounting,
    seccomp forbids all of this."""
    writable = []
    if config["confine"] == "namespaces" and role == "program":  # tests write no files
        check(libc.unshare(CLONE_NEWNS), "unshare")
        options = "size=%d,nr_inodes=4096,mode=700" % config["disk_bytes"]
        check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options.encode()), "mount /tmp")
        writable.append("/tmp")
        os.chdir("/tmp")
    limit(config, role)
    if config["confine"] == "none":
        return
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    landlock(config, writable)
    drop_capabilities()
    if config["filter"]:
        code = bytes.fromhex(config["filter"])
        buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
        check(libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0), "seccomp")


def read_all(descriptor):
    with io.open(descriptor, "rb") as file:
        return file.read()


def keep_only(descriptors):
    """Moves the given descriptors to 3, 4, ... and closes all others."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 100) for descriptor in descriptors]
    for index, descriptor in enumerate(high):
        os.dup2(descriptor, 3 + index, inheritable=False)
    os.closerange(3 + len(high), 1024)
    return list(range(3, 3 + len(high)))


class Zygote:
    def __init__(self, control):
        self.control = control
        self.config = json.loads(control.recv(1 << 20))
        self.names = prelude_names()
        self.children = {}
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLIN)
        self.own_namespace = os.pidfd_open(os.getpid())

    def tell(self, message):
        self.control.send(json.dumps(message).encode())

    def spawn(self, role, descriptors, action):
        """Forks a child that confines itself in its own process namespace, runs
        action(*descriptors) and ends. It reports on the pipe, which is returned with its pid, when
        it is confined."""
        isolated = self.config["confine"] == "namespaces"
        ready, announce = os.pipe()
        if isolated:
            check(libc.unshare(CLONE_NEWPID), "unshare")
        pid = os.fork()
        if pid == 0:
            self.child(role, descriptors, announce, action)
        if isolated:
            check(libc.setns(self.own_namespace, CLONE_NEWPID), "setns")
        os.close(announce)
        handle = os.pidfd_open(pid)
        self.children[handle] = pid
        self.poll.register(handle, select.POLLIN)
        return pid, ready

    def confined(self, started):
        """Waits until all of them are confined; returns their pids."""
        problem = ""
        for _, ready in started:
            said = b"".join(iter(lambda: os.read(ready, 4096), b""))
            os.close(ready)
            if said != b"ready":
                problem = said.decode(errors="replace") or "the process ended while it was set up"
        if problem:
            raise OSError(problem)
        return [pid for pid, _ in started]

    def child(self, role, descriptors, announce, action):
        status = 70
        try:
            announce, *descriptors = keep_only([announce, *descriptors])
            os.setsid()  # a signal to the process group crosses namespaces
            try:
                confine(self.config, role)
            except BaseException as error:
                os.write(announce, str(error).encode())
                os._exit(70)
            os.write(announce, b"ready")
            os.close(announce)
            status = action(*descriptors)
        except BaseException:
            status = 70
        os._exit(status or 0)

    def start_pair(self, source, tests, results):
        """The program and, in another process, the tests that call it."""
        ours, theirs = socket.socketpair()

        def program(source, channel):
            random.seed(0)
            serve_program(socket.socket(fileno=channel), read_all(source), self.names)

        def judge(tests, results, channel):
            gc.disable()  # short-lived: collecting millions of results costs more than it frees
            job = json.loads(read_all(tests))
            results = Results(results)
            try:
                run_tests(job, Peer(socket.socket(fileno=channel), trusted=True), results)
            except BaseException as error:
                results.line("x " + json.dumps("the tests cannot be run: " + repr(error)[:300]))

        with ours, theirs:
            first = self.spawn("program", [source, theirs.fileno()], program)
            second = self.spawn("tests", [tests, results, ours.fileno()], judge)
        return self.confined([first, second])

    def start_main(self, source, standard_in, standard_out, standard_error):
        def main(source, *streams):
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
                os.close(stream)
            random.seed(0)
            return run_main(read_all(source), self.names)

        return self.confined([self.spawn("program", [source, standard_in, standard_out, standard_error], main)])

    def obey(self):
        data, descriptors, _, _ = socket.recv_fds(self.control, 4096, 8)
        if not data:
            os._exit(0)
        order = json.loads(data)
        if order["do"] == "kill":
            return self.kill(order["pid"])
        if order["do"] == "time":
            return self.tell({"time": self.processor_time(order["pid"])})
        if order["do"] == "limit":
            return self.config.update(memory=order["memory"])
        try:
            start = self.start_pair if order["do"] == "pair" else self.start_main
            self.tell({"started": start(*descriptors)})
        except OSError as error:
            self.tell({"failed": str(error)})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def kill(self, pid):
        if pid in self.children.values():
            os.kill(pid, signal.SIGKILL)
            if self.config["confine"] == "none":
                try:
                    os.killpg(pid, signal.SIGKILL)
                except OSError:
                    pass

    def processor_time(self, pid):
        try:
            return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
        except OSError:
            return 0.0

    def reap(self, handle):
        pid = self.children.pop(handle)
        self.poll.unregister(handle)
        os.close(handle)
        _, status, usage = os.wait4(pid, 0)
        self.tell({"ended": pid, "status": status, "cpu": usage.ru_utime + usage.ru_stime})

    def run(self):
        os.dup2(1, 2)  # until here errors went to the grader
        self.tell({"ready": True})
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.control.fileno():
                    self.obey()
                else:
                    self.reap(descriptor)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(1050)  # Python's 1000 and the harness's own frames
    zygote = Zygote(socket.socket(fileno=3))
    sys.path[:] = zygote.config["path"]
    # numpy makes a fork three times as expensive, so only interpreters for programs and tests that
    # name it load it.
    for name in ("numpy" if zygote.config["numpy"] else "time", "traceback", "atexit", "string", "dataclasses", "enum", "queue", "cmath",
                 "statistics", "hashlib", "array", "abc", "contextlib", "encodings.idna"):
        try:
            globals()[name.split(".")[0]] = __import__(name)
        except ImportError:
            pass
    gc.collect()
    gc.freeze()
    zygote.run()


main()
