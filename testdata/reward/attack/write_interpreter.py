import os
def attempt():
    with open(os.__file__, "r+") as file: file.read(1)
    return "the interpreter's own file is open for writing"
