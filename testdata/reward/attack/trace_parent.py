import ctypes, os
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (16, 0x4206, 0):  # attach, seize, trace me
        if libc.ptrace(request, os.getppid() if request else 0, 0, 0) == 0: return request
    raise OSError("no tracing")
