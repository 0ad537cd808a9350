# 200 MB in files of 1 MB, where 64 MB are allowed.
def attempt():
    for number in range(200):
        with open("/tmp/%d" % number, "wb") as file: file.write(bytes(1 << 20))
    return "200 MB written"
