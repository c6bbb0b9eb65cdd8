/* A libtilesim of another version, or with other calls. */
#include "sim/sim.h"
#include "version.h"

const SimCalls *
tilesim_calls(void)
{
  static const SimCalls calls = {.version = TILEC_VERSION_NUMBER + 90000 * NEWER, .size = sizeof calls + LONGER};
  return &calls;
}
