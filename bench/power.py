"""What a GPU says of itself while it works: joules that it took so far, and the clock of its multiprocessors (NVML)."""
import ctypes

SM_CLOCK = 1        # nvmlClockType_t


class Meter:
    """Of the device that CUDA calls number `ordinal`. OSError: there is no NVML, or it does not say."""

    def __init__(self, ordinal=0):
        self.lib, name = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(64)
        if ctypes.CDLL("libcuda.so.1").cuDeviceGetPCIBusId(name, len(name), ordinal):
            raise OSError("no bus id of the device")
        self.device = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        self.call("nvmlDeviceGetHandleByPciBusId_v2", name, ctypes.byref(self.device))
        self.joules(), self.mhz()

    def call(self, name, *args):
        if status := getattr(self.lib, name)(*args):
            raise OSError(f"{name}: status {status}")

    def joules(self):
        mj = ctypes.c_ulonglong()
        self.call("nvmlDeviceGetTotalEnergyConsumption", self.device, ctypes.byref(mj))
        return mj.value / 1e3

    def mhz(self):
        mhz = ctypes.c_uint()
        self.call("nvmlDeviceGetClockInfo", self.device, SM_CLOCK, ctypes.byref(mhz))
        return mhz.value
