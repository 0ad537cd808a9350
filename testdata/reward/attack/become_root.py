import os
def attempt():
    os.setuid(0)
    os.setgid(0)
    os.chroot("/tmp")
    return "root"
