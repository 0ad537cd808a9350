import signal
def attempt():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("/tmp/large", "wb") as file:
        for _ in range(200): file.write(bytes(1 << 20))
    return "200 MB written"
