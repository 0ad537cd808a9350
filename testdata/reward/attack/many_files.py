def attempt():
    for number in range(20000): open("/tmp/%d" % number, "w").close()
    return "20,000 files"
