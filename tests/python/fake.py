"""The driver that only records (tests/runtime/fakecuda.c), as Python sees it: `fake` is its one FakeCuda. For tests that run with it first
on LD_LIBRARY_PATH."""
import ctypes as C


class FakeCall(C.Structure):
    _fields_ = [("name", C.c_char_p), ("count", C.c_int)]


class FakeLaunch(C.Structure):
    _fields_ = [("grid", C.c_uint * 3), ("block", C.c_uint * 3), ("shared", C.c_uint), ("stream", C.c_void_p), ("params", C.POINTER(C.c_void_p)), ("count", C.c_int),
                ("cluster", C.c_uint * 3), ("pdl", C.c_int), ("extended", C.c_int)]


class FakeCuda(C.Structure):
    _fields_ = [("calls", FakeCall * 128)] + [(n, C.c_int) for n in ("ncalls", "total", "clock", "allocations", "streams", "events", "modules", "retained",
                                                                     "dynamic_shared", "cubins", "driver_version", "capability", "init_result", "launch_result")] + \
               [("launch", FakeLaunch)]


driver = C.CDLL("libcuda.so.1")
driver.fakecuda.restype = C.POINTER(FakeCuda)
fake = driver.fakecuda().contents


def given(index, size):
    """The bytes of a parameter of the last launch."""
    return C.string_at(fake.launch.params[index], size)
