/* sim_find.h - where the simulator is: in this program, or in a library of its own that is opened when a device asks for it. */
#ifndef TILERT_SIM_FIND_H
#define TILERT_SIM_FIND_H
#include "sim/sim.h"
#include "tilert.h"

int sim_find(const SimCalls **out, TilertError *err);
#endif
