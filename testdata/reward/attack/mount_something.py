import ctypes
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", b"/usr", b"tmpfs", 0, None) == 0 or libc.umount2(b"/tmp", 2) == 0: return "mounted"
    raise OSError("refused")
