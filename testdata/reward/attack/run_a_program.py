import subprocess, sys
def attempt(): return subprocess.run([sys.executable or "/usr/bin/python3", "-c", "print(1)"], capture_output=True).stdout
