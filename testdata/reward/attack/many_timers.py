# POSIX timers cost the kernel memory that no limit of the process counts
import ctypes, os
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.timer_create.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    made, timer = 0, ctypes.c_void_p()
    while made < 1000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0: made += 1
    if made: return made
    raise OSError("refused")
