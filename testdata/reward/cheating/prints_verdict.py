print("p\np\np\nend")
def f(x):
    print("p\nend", flush=True)
    return 0
