# 2 GB in steps of 64 MB, where 512 MB are allowed.
def attempt():
    held = [bytearray(64 << 20) for _ in range(32)]
    return len(held)
