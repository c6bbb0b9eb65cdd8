/* graph.h - private: what graphs and captures share. */
#ifndef TILERT_GRAPH_H
#define TILERT_GRAPH_H
#include "device.h"

typedef struct GraphNode {
  atomic_uint refs;
  Work work;                         /* launch is the node's own, and buffers are held */
  TilertLaunch *launch;
  void *native;
  size_t nafter;
  TilertNode after[];
} GraphNode;

struct TilertGraph {
  TilertDevice *device;
  void *native;                      /* NULL: the device has none */
  GraphNode **node;
  size_t n, cap;
};

/* NULL: no memory. */
GraphNode *node_new(const Work *w, const TilertNode *after, size_t nafter);
void node_release(GraphNode *n);
int graph_new(TilertDevice *dev, void *native, TilertGraph **out, TilertError *err);
int graph_reserve(TilertGraph *g, TilertError *err);
#endif
