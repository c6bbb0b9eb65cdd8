"""What a device could do at most: bytes a second from what it says of itself, operations a second of its tensor cores by its name.

The numbers are the makers' data sheets', without sparsity: TFLOP/s of products of these types, summed in f32 (i8: in i32)."""

# A part of the device's name: the longest that fits counts.
PRODUCTS = {
    "A100": dict(f16=312, bf16=312, tf32=156, i8=624, f64=19.5, f32=19.5),
    "H100": dict(f16=989, bf16=989, tf32=494, f8=1979, i8=1979, f64=66.9, f32=66.9),
    "H100 PCIe": dict(f16=756, bf16=756, tf32=378, f8=1513, i8=1513, f64=51, f32=51),
    "H100 NVL": dict(f16=835, bf16=835, tf32=417, f8=1671, i8=1671, f64=60, f32=60),
    "H200": dict(f16=989, bf16=989, tf32=494, f8=1979, i8=1979, f64=66.9, f32=66.9),
    "B200": dict(f16=2250, bf16=2250, tf32=1125, f8=4500, i8=4500, f64=37, f32=75),
    "L4": dict(f16=121, bf16=121, tf32=60, f8=242, i8=242, f32=30.3),
    "L40S": dict(f16=362, bf16=362, tf32=183, f8=733, i8=733, f32=91.6),
}
CLASS = {"f8e4m3": "f8", "f8e5m2": "f8", "u8": "i8"}


def bandwidth(info):
    """Bytes a second of the device's memory, two transfers a clock; None if it does not say. info: memory_clock_khz, memory_bus_bits."""
    return 2e3 * info.get("memory_clock_khz", 0) * info.get("memory_bus_bits", 0) / 8 or None


def products(name, dtype):
    """Operations a second; None if the device or what it does with the type is not known. f32 means tf32."""
    known = [n for n in PRODUCTS if n in name]
    rates = PRODUCTS[max(known, key=len)] if known else {}
    rate = rates.get("tf32" if dtype == "f32" else CLASS.get(dtype, dtype))
    return rate * 1e12 if rate else None


def share(info, seconds, bytes=0, flops=0, dtype="f16"):
    """How much of the time the device would need at least: the larger of what its memory and its products take; None if unknown."""
    least = []
    for work, roof in ((bytes, bandwidth(info)), (flops, products(info["name"], dtype))):
        if work:
            if not roof:
                return None
            least.append(work / roof)
    return max(least) / seconds if least and seconds else None
