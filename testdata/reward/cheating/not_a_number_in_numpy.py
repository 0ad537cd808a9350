import numpy as np
def f(x): return np.array([float("nan")])[0]
