def f(x): raise KeyboardInterrupt
