import os, stat
def attempt():
    os.mknod("/tmp/memory", 0o600 | stat.S_IFCHR, os.makedev(1, 1))
    return "a device"
