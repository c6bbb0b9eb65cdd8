/* cluster_ends.h - private to passes/: barriers of the cluster that programs begin and end with. */
#ifndef TILEC_CLUSTER_ENDS_H
#define TILEC_CLUSTER_ENDS_H
#include "internal.h"

/* Adds them to f where it needs them. */
void cluster_ends(Func *f);
#endif
