/* fuzz_ptx.c - any bytes as PTX: what a cache entry or a file gives to a launcher. Its manifests are read, and the simulator
 * decodes it: both end in a result or in an error. A manifest that was read is written as a line that reads as the same one. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>
#include "target.h"
#include "tilert.h"

enum { LONGEST = 64 * 1024, MANIFESTS = 4 };

static char *
line_of(const TilertManifest *m)
{
  size_t length = tilert_manifest_text(m, NULL, 0);
  char *line = malloc(length + 1);
  if (line)
    tilert_manifest_text(m, line, length + 1);
  return line;
}

static void
write_and_read(const TilertManifest *m)
{
  TilertManifest again;
  TilertError error;
  size_t n = 0;
  char *line = line_of(m), *second = NULL;
  if (!line)
    return;
  if (tilert_manifest_parse(line, strlen(line), &again, 1, &n, &error) || n != 1)
    fault("the line of a manifest does not read", line);
  second = line_of(&again);
  if (second && strcmp(line, second) != 0)
    fault("a manifest reads as another one", line);
  free(line);
  free(second);
}

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
  if (tilert_manifest_parse((const char *)data, size, found, MANIFESTS, &n, &error))
    n = 0;
  for (size_t i = 0; i < n && i < MANIFESTS; i++)
    write_and_read(&found[i]);
  if (sim_load(machine, (const char *)data, size, &module, &err)) {
    if (err.kind == SIM_OK || !*err.message)
      fault("refused without a reason", "");
  } else {
    sim_unload(module);
  }
  sim_destroy(machine);
  return 0;
}
