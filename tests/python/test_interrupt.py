"""Launches that do not end, on the simulator: Ctrl-C stops them, whatever way they were begun, and the device goes on."""
import os
import signal
import threading
import unittest

import numpy as np

from common import AXPY, kernel, tilec

SPIN = """kernel spin(x: *i32, const B = 1) tune(B=1) tune(B=2) warps(1) {
  while atomic_add(x, B) >= 0 { }
}
"""


class Interrupt(unittest.TestCase):
    def setUp(self):
        self.dev = tilec.Device("sim")
        self.x = self.dev.array(np.zeros(1, "i4"))
        self.prog = self.dev.program(text=SPIN, name="case.tile")
        self.spin = self.prog.kernel()

    def interrupted(self, launch, error=KeyboardInterrupt):
        """The launch is stopped by the signals that another thread sends as long as it runs."""
        done = threading.Event()

        def send():
            while not done.wait(0.2):
                os.kill(os.getpid(), signal.SIGINT)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            with self.assertRaises(error) as raised:
                launch()
            self.assertIn("still in the loop at case.tile:2", str(raised.exception.__cause__))
        finally:
            while sender.is_alive():
                try:
                    done.set()
                    sender.join()
                except (KeyboardInterrupt, error):   # one more, on its way already
                    pass
        y = self.dev.array(np.ones(4, "f4"))
        kernel(self.dev, AXPY)[1](2.0, y, y, 4)
        self.assertEqual(list(y.numpy()), [3] * 4)

    def test_launch(self):
        self.interrupted(lambda: self.spin[1](self.x))

    def test_bound(self):
        self.interrupted(self.spin.bind(1, self.x))

    def test_host_memory(self):
        self.interrupted(self.spin.bind(1, np.zeros(1, "i4")))

    def test_bench(self):
        self.interrupted(self.spin.bind(1, self.x).bench)

    def test_tune(self):
        self.interrupted(lambda: self.prog.tune("spin", 1, self.x))

    def test_handler(self):
        """Whatever a handler raises goes on to the caller."""
        def handler(number, frame):
            raise TimeoutError("enough")
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handler))
        self.interrupted(lambda: self.spin[1](self.x), TimeoutError)

    def test_other_thread(self):
        """A launch of another thread is not the main thread's to stop: it ends by itself, or by the device's own limits."""
        y, errors = self.dev.array(np.ones(4, "f4")), []

        def work():
            try:
                kernel(self.dev, AXPY)[1](2.0, y, y, 4)
            except BaseException as x:
                errors.append(x)
        t = threading.Thread(target=work)
        t.start()
        t.join()
        self.assertEqual((list(y.numpy()), errors), ([3] * 4, []))

    def test_errors(self):
        """What a launch raises is raised where it was called."""
        with self.assertRaisesRegex(tilec.Error, r"case.tile:\d+: thread .* reads x\[4\] of 4 f32: mask missing\?"):
            y = self.dev.array(np.ones(4, "f4"))
            kernel(self.dev, AXPY)[1](2.0, y, y, 5)


if __name__ == "__main__":
    unittest.main()
