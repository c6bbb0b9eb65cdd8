/* calls.c - what libtilesim gives away. */
#include "sim.h"
#include "version.h"

const SimCalls *
tilesim_calls(void)
{
  static const SimCalls calls = {
    TILEC_VERSION_NUMBER, sizeof calls,
#define SIM(name) sim_##name,
#include "calls.def"
#undef SIM
  };
  return &calls;
}
