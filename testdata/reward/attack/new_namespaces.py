import ctypes
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (0x10000000, 0x00020000, 0x40000000, 0x20000000):
        if libc.unshare(flags) == 0: return hex(flags)
    raise OSError("refused")
