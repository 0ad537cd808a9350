import os
def attempt():
    os.symlink("/etc/passwd", "/tmp/a")
    return open("/tmp/a").read()
