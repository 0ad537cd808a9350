# a lock on a file that all programs share would be seen by all of them
import fcntl
def attempt(): return fcntl.flock(open("/dev/null"), fcntl.LOCK_EX | fcntl.LOCK_NB)
