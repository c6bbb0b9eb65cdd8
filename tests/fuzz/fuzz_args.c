/* fuzz_args.c - any bytes as what tilerun is given: a .npy file, or an expression of extents. */
#include "expr.h"
#include "npy.h"
#include "target.h"

enum { LONGEST = 4096 };

static int
value_of(void *user, const char *name, size_t len, int64_t *value)
{
  *value = len ? name[0] : 0;
  return len < 3;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const Dtype as[] = {DTYPE_NONE, DTYPE_BF16, DTYPE_E4M3};
  char message[256];
  Array a;
  int64_t n;
  if (size > LONGEST)
    return 0;
  for (unsigned i = 0; i < COUNT(as); i++)
    if (!npy_parse(data, size, as[i], &a, message, sizeof message)) {
      for (size_t k = 0; k < a.count; k++)
        array_get(&a, k);
      array_destroy(&a);
    }
  expr_eval((const char *)data, size, value_of, NULL, &n, message, sizeof message);
  return 0;
}
