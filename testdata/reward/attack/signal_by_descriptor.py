# a descriptor can be told to send any signal to any process of the same user
import fcntl, os
def attempt():
    reader, _ = os.pipe()
    for command, value in ((fcntl.F_SETOWN, os.getpid()), (10, 23), (fcntl.F_NOTIFY, 1), (1031, 1 << 20), (fcntl.F_SETLEASE, 0)):
        try: fcntl.fcntl(reader, command, value)
        except OSError as error:
            if error.errno == 1: continue
        return command
    raise OSError("all refused")
