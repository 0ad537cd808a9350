import ctypes, os
def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    if libc.process_vm_readv(os.getpid(), vector, 1, vector, 1, 0) >= 0: return "read"
    raise OSError("refused")
