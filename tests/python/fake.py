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
               [("launch", FakeLaunch)] + [(n, C.c_int) for n in ("sync_result", "alloc_result", "multiprocessors", "required_cluster", "large_clusters")] + \
               [("name", C.c_char * 64)] + [(n, C.c_int) for n in ("map_needs_context", "graphs", "execs", "pools", "host_blocks", "pinned", "peer", "capture_result",
                                                                   "graph_result", "log_on")] + \
               [("log", C.c_char * 4096), ("two_contexts", C.c_int), ("mixed", C.c_int), ("launched_in", C.c_void_p), ("nsizes", C.c_int), ("size", C.c_int * 32),
                ("value", C.c_ubyte * 64 * 32)]


driver = C.CDLL("libcuda.so.1")
driver.fakecuda.restype = C.POINTER(FakeCuda)
fake = driver.fakecuda().contents


def keep(*sizes):
    """From here on parameters of launches are kept, which have so many bytes."""
    fake.nsizes, fake.size[:len(sizes)] = len(sizes), sizes


def given(index, size):
    """The bytes of a parameter of the last launch."""
    assert index < fake.nsizes and size <= fake.size[index]
    return bytes(fake.value[index][:size])
