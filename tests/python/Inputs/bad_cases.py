"""Cases that end in every way there is; for tests/python/test_harness.py."""
import os
import signal
import time

import numpy as np
from cases import Case, Run


class Lost(Exception):
    status = 5                                             # what a device says whose context is lost


def ends(dev, rng, how):
    if how == "exits":
        os._exit(3)
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "eats":
        hog = [np.ones(1 << 22) for _ in range(64)]        # 2 GiB in pieces of 32 MiB
        time.sleep(5)
        return hog
    if how == "hangs":
        time.sleep(60)
    if how == "raises":
        raise ValueError("as planned")
    if how == "loses":
        raise Lost("the context")
    if how == "talks":
        print('{"why": ""}')                               # what a case prints is not a result
        os.write(1, b'{"why": ""}\n')
    return Run(None, [("x", np.zeros(3), np.zeros(3) + (how == "is wrong"), 0)])


CASES = [Case(how.replace(" ", "_"), ends, [dict(how=how)], [dict(how=how), dict(how="is fine")])
         for how in ("is fine", "exits", "is killed", "eats", "hangs", "raises", "loses", "is wrong", "talks")]
