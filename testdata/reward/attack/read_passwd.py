def attempt(): return open("/etc/passwd").read()
