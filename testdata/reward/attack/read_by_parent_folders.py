def attempt(): return open("/tmp/" + "../" * 30 + "etc/passwd").read()
