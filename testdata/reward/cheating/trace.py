import sys, threading
def trace(frame, event, argument):
    frame.f_locals.clear()
    return trace
threading.settrace(trace)
sys.setprofile(trace)
sys.settrace(trace)
def f(x): return 0
