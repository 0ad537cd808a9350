# what is written there goes into the host's pool
def attempt(): return open("/dev/urandom", "wb", buffering=0).write(b"x")
