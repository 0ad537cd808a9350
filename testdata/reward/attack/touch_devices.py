# the times of /dev/null are the host's
import os
def attempt():
    for path in ("/dev/null", "/dev/zero", "/dev/urandom"):
        for change in (lambda: os.utime(path), lambda: os.chmod(path, 0o666)):
            try: change()
            except OSError: continue
            return path
    raise OSError("all refused")
