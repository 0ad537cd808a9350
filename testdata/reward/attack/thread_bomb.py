import threading
def attempt():
    stop = threading.Event()
    threads = []
    try:
        for count in range(200):
            thread = threading.Thread(target=stop.wait, args=(5,), daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError: raise OSError("too many")
    finally: stop.set()
    return count
