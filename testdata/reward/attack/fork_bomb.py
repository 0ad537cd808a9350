# At most 200 forks, each asleep for half a second.
import os, time
def attempt():
    for count in range(200):
        if os.fork() == 0:
            time.sleep(0.5)
            os._exit(0)
    return count
