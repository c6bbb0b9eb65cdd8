/* tensor_map.c - tensor maps: what the device's encoder needs to be there. */
#include "device.h"

enum { MAP_ALIGN = 64, LEAST_PIXELS_RANK = 3 };

static int
check_tensor(const TilertTensor *tensor, uint32_t least, const void *out, TilertError *err)
{
  if (tensor->rank < least || tensor->rank > TILERT_MAX_RANK)
    return rt_error_set(err, TILERT_E_ARGUMENT, "a tensor map of rank %u: %u to %d are possible", tensor->rank, least, TILERT_MAX_RANK);
  NEED(tensor->extents);
  NEED(tensor->strides || tensor->rank == 1);
  NEED(tensor->steps);
  if ((uintptr_t)out % MAP_ALIGN)
    return rt_error_set(err, TILERT_E_ARGUMENT, "a tensor map is aligned to %d bytes", MAP_ALIGN);
  return TILERT_OK;
}

int
tilert_tensor_map(TilertDevice *dev, const TilertTensor *tensor, void *out, TilertError *err)
{
  NEED(dev);
  NEED(tensor);
  NEED(out);
  int status = check_tensor(tensor, 1, out, err);
  if (status)
    return status;
  NEED(tensor->box);
  return dev->ops->tensor_map(dev, tensor, NULL, out, err);
}

int
tilert_tensor_map_im2col(TilertDevice *dev, const TilertTensor *tensor, const TilertPixels *pixels, void *out, TilertError *err)
{
  NEED(dev);
  NEED(tensor);
  NEED(pixels);
  NEED(out);
  int status = check_tensor(tensor, LEAST_PIXELS_RANK, out, err);
  if (status)
    return status;
  NEED(pixels->lower);
  NEED(pixels->upper);
  return dev->ops->tensor_map(dev, tensor, pixels, out, err);
}
