/* cluster_ends.h - private to passes/: barriers of the cluster that programs begin and end with, and what their mbarriers hand over. */
#ifndef TILEC_CLUSTER_ENDS_H
#define TILEC_CLUSTER_ENDS_H
#include "internal.h"

/* Adds the barriers to f where it needs them, and says at its mbarriers which hand over memory to other programs. */
void cluster_ends(Func *f);
#endif
