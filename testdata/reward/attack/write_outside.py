import os
def attempt():
    for folder in ("/", "/usr", "/etc", "/dev", "/dev/shm", "/var/tmp", os.path.dirname(os.__file__)):
        try:
            with open(folder + "/antisd-escaped", "w") as file: file.write("x")
            return folder
        except OSError: pass
    raise OSError("nothing can be written")
