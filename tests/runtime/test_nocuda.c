/* Without a usable driver "cuda" is a clean status and "auto" is the simulator. Where there is a GPU, both open. */
#include "check.h"
#include "tilert.h"

int
main(void)
{
  TilertDevice *d;
  TilertError err = {0};
  if (tilert_cuda_count() > 0) {
    printf("skipped: this machine has a GPU\n");
    return 77;
  }
  CHECK_FAILS(tilert_device_open("cuda", NULL, &d, &err), TILERT_E_UNAVAILABLE, "");
  CHECK(!d && err.message[0]);
  CHECK_FAILS(tilert_device_wrap(&err, &d, &err), TILERT_E_UNAVAILABLE, "no CUDA driver");
  CHECK(!d);
  CHECK_OK(tilert_device_open("auto", NULL, &d, &err));
  CHECK(tilert_device_info(d)->is_sim);
  tilert_device_close(d);
  return 0;
}
