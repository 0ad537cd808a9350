def attempt(): return open("/etc/hostname").read()
