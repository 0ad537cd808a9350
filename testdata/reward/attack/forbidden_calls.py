# bpf, keyctl, kexec_load, userfaultfd, perf_event_open, io_uring_setup, memfd_create, init_module, setns, open_by_handle_at
import ctypes, os
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    if os.uname().machine != "x86_64": raise OSError("the numbers below are another processor's")
    for number in (321, 250, 246, 323, 298, 425, 319, 175, 308, 304, 59, 322, 447):
        libc.syscall(number, 0, 0, 0, 0, 0, 0)
        if ctypes.get_errno() != 1: return number
        ctypes.set_errno(0)
    raise OSError("all refused")
