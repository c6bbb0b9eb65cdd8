/* tensor_map.c - tensor maps: what the device's encoder needs to be there. */
#include "device.h"

enum { MAP_ALIGN = 64 };

int
tilert_tensor_map(TilertDevice *dev, const TilertTensor *tensor, void *out, TilertError *err)
{
  NEED(dev);
  NEED(tensor);
  NEED(out);
  if (tensor->rank < 1 || tensor->rank > TILERT_MAX_RANK)
    return rt_error_set(err, TILERT_E_ARGUMENT, "a tensor map of rank %u: 1 to %d are possible", tensor->rank, TILERT_MAX_RANK);
  NEED(tensor->extents);
  NEED(tensor->strides || tensor->rank == 1);
  NEED(tensor->box);
  NEED(tensor->steps);
  if ((uintptr_t)out % MAP_ALIGN)
    return rt_error_set(err, TILERT_E_ARGUMENT, "a tensor map is aligned to %d bytes", MAP_ALIGN);
  return dev->ops->tensor_map(dev, tensor, out, err);
}
