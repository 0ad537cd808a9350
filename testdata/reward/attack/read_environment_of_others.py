import os
def attempt():
    return [open("/proc/%s/environ" % pid, "rb").read() for pid in (1, os.getppid(), os.getpid())]
