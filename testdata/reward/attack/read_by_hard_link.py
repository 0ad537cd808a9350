import os
def attempt():
    os.link(os.__file__, "/tmp/os.py")
    with open("/tmp/os.py", "a") as file: file.write("#")
    return "linked and written"
