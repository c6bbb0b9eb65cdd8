"""Numbers to measure functions at: the same with every version of every library."""
import numpy as np


class Draw:
    """Numbers from a counter (splitmix64): the same in every version of every library."""

    def __init__(self, seed):
        self.at = np.uint64(seed)

    def bits(self, n):
        with np.errstate(over="ignore"):
            x = (self.at + np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            self.at += np.uint64(n)
            x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
            return x ^ x >> np.uint64(31)

    def unit(self, n):
        """From 0 to 1."""
        return (self.bits(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def even(self, n, lo, hi):
        return lo + (hi - lo) * self.unit(n)

    def sized(self, n, lo=-1074.0, hi=1024.0):
        """Of both signs, evenly spread in the exponent."""
        x = np.exp2(np.clip(self.even(n, lo, hi), -1074, 1023.9)) * (1 + self.unit(n) * 2.0**-12)
        return np.where(self.bits(n) & np.uint64(1), -x, x)

    def near(self, n, place):
        """At all distances from a place, down to its neighbours."""
        return place + place * self.sized(n, -53.0, -1.0)
