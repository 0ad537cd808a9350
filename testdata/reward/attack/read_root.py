import os
def attempt():
    names = set(os.listdir("/")) - {"usr", "lib", "lib64", "etc", "dev", "tmp", "bin"}
    if names & {"root", "home", "work", "proc", "var"}: return names
    raise OSError("nothing of the machine is here")
