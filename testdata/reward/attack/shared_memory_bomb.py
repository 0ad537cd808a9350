import mmap
def attempt():
    held = [mmap.mmap(-1, 64 << 20) for _ in range(32)]
    return len(held)
