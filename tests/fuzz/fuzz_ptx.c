/* fuzz_ptx.c - any bytes as PTX: what a cache entry or a file gives to a launcher. Its manifests are read, and the simulator
 * decodes it: both end in a result or in an error. */
#include "sim.h"
#include "target.h"
#include "tilert.h"

enum { LONGEST = 64 * 1024, MANIFESTS = 4 };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  TilertManifest found[MANIFESTS];
  TilertError error;
  SimMachine *machine = NULL;
  SimModule *module = NULL;
  SimError err;
  size_t n = 0;
  if (size > LONGEST || sim_create(NULL, &machine, &err))
    return 0;
  tilert_manifest_parse((const char *)data, size, found, MANIFESTS, &n, &error);
  if (sim_load(machine, (const char *)data, size, &module, &err)) {
    if (err.kind == SIM_OK || !*err.message)
      fault("refused without a reason", "");
  } else {
    sim_unload(module);
  }
  sim_destroy(machine);
  return 0;
}
