/* cuda_graph.c - graphs of an NVIDIA GPU: nodes of the driver, and what streams capture.
 *
 * A launch that may begin before the one in front of it has ended (pdl) says so, in a graph, on the edge between the two, which therefore
 * is added by itself: from the port of the earlier kernel that is passed when its blocks have let the next one go. */
#include "cuda_device.h"
#include <stdlib.h>
#include <string.h>

/* ---- captures ---- */

int
cuda_capture_begin(TilertDevice *d, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  if (!c->cu.StreamGetCaptureInfo)
    return cuda_lacks("cuStreamGetCaptureInfo_v2", err);
  WITHIN(c, TRY(c, StreamBeginCapture, (stream, CU_CAPTURE_RELAXED)));
}

/* What comes next in the stream comes after the node that was made last. */
static int
last_current(CudaDevice *c, CUstream stream, void **node, TilertError *err)
{
  int state = 0;
  uint64_t id;
  CUgraph graph;
  const CUgraphNode *after = NULL;
  const CUgraphEdge *edges;
  size_t n = 0;
  int status = c->cu.StreamGetCaptureEdges ? TRY(c, StreamGetCaptureEdges, (stream, &state, &id, &graph, &after, &edges, &n))
                                           : TRY(c, StreamGetCaptureInfo, (stream, &state, &id, &graph, &after, &n));
  if (!status && (state != CU_CAPTURE_ACTIVE || n == 0))
    status = rt_error_set(err, TILERT_E_DRIVER, "the stream's capture was broken");
  *node = status ? NULL : after[n - 1];
  return status;
}

int
cuda_capture_last(TilertDevice *d, void *stream, void **node, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, last_current(c, stream, node, err));
}

static int
end_current(CudaDevice *c, CUstream stream, void **graph, TilertError *err)
{
  CUresult r = c->cu.StreamEndCapture(stream, (CUgraph *)graph);
  if (r < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || r > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    return cuda_result(c, r, "cuStreamEndCapture", err);
  cuda_result(c, r, "cuStreamEndCapture", err);
  return error_prefix(err, TILERT_E_ARGUMENT, r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      ? "the capture was broken: something waited for the stream, or did what captures forbid"
                      : r == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ? "the capture has another stream, which the first did not wait for"
                      : "the capture failed");
}

int
cuda_capture_end(TilertDevice *d, void *stream, void **graph, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, end_current(c, stream, graph, err));
}

/* ---- nodes ---- */

int
cuda_graph_create(TilertDevice *d, void **out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  if (!c->cu.GraphAddKernelNode)
    return cuda_lacks("cuGraphAddKernelNode_v2", err);
  WITHIN(c, TRY(c, GraphCreate, ((CUgraph *)out, 0)));
}

void
cuda_graph_destroy(TilertDevice *d, void *graph)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.GraphDestroy(graph));
}

/* Where it comes: the graph, what it comes after, and the device for which all that is. */
typedef struct Place { CudaDevice *c; CUgraph graph; const CUgraphNode *after; size_t nafter; CUgraphNode *node; TilertError *err; } Place;

static CUkernelParams
kernel_params(const TilertLaunch *l)
{
  CUkernelParams p = {.function = l->function, .shared = l->shared, .params = (void **)(uintptr_t)l->params};
  memcpy(p.grid, l->grid, sizeof p.grid);
  memcpy(p.block, l->block, sizeof p.block);
  return p;
}

static int
add_kernel(const Place *p, const TilertLaunch *l)
{
  CudaDevice *c = p->c;
  TilertError *err = p->err;
  CUlaunchAttribute attributes[CUDA_ATTRIBUTES];
  const CUkernelParams params = kernel_params(l);
  int status = TRY(c, GraphAddKernelNode, (p->node, p->graph, p->after, p->nafter, &params));
  const unsigned n = cuda_attributes(l, 1, attributes);
  for (unsigned i = 0; !status && i < n; i++)
    status = TRY(c, GraphKernelNodeSetAttribute, (*p->node, attributes[i].id, &attributes[i].value));
  return status ? error_prefix(err, status, "kernel %s", l->kernel->manifest.kernel) : TILERT_OK;
}

static CUplace3D
place(const Rows *r, size_t height)
{
  return (CUplace3D){.type = r->host ? CU_MEMORY_HOST : CU_MEMORY_DEVICE, .host = r->host ? (void *)(uintptr_t)r->address : NULL,
                     .device = r->host ? 0 : r->address, .pitch = r->pitch, .height = height};
}

static int
add_copy(const Place *p, const Copy *copy)
{
  CudaDevice *c = p->c;
  TilertError *err = p->err;
  const CUmemcpy3D params = {place(&copy->src, copy->height), place(&copy->dst, copy->height), copy->width, copy->height, 1};
  return TRY(c, GraphAddMemcpyNode, (p->node, p->graph, p->after, p->nafter, &params, c->context));
}

static int
add_fill(const Place *p, const Work *w)
{
  CudaDevice *c = p->c;
  TilertError *err = p->err;
  const unsigned value = w->width == 4 ? w->pattern : w->pattern & ((1u << 8 * w->width) - 1);
  const CUmemsetParams params = {w->at, 0, value, w->width, w->count, 1};
  return TRY(c, GraphAddMemsetNode, (p->node, p->graph, p->after, p->nafter, &params, c->context));
}

static int
add_node(const Place *p, const Work *w)
{
  CudaDevice *c = p->c;
  TilertError *err = p->err;
  const CUhostParams host = {w->call, w->user};
  switch (w->kind) {
  case TILERT_NODE_LAUNCH:
    if (!w->launch->empty)
      return add_kernel(p, w->launch);
    break;
  case TILERT_NODE_COPY: return add_copy(p, &w->copy);
  case TILERT_NODE_FILL: return add_fill(p, w);
  case TILERT_NODE_HOST: return TRY(c, GraphAddHostNode, (p->node, p->graph, p->after, p->nafter, &host));
  case TILERT_NODE_EMPTY: break;
  }
  return TRY(c, GraphAddEmptyNode, (p->node, p->graph, p->after, p->nafter));
}

/* A node whose edges from kernels are programmatic: sorted so that the others come first. */
static int
add_early(const Place *p, const Work *w, const int *after_launch, CUgraphNode *sorted)
{
  static const CUgraphEdge edge = {.from_port = CU_PORT_PROGRAMMATIC, .type = CU_DEPENDENCY_PROGRAMMATIC};
  CudaDevice *c = p->c;
  TilertError *err = p->err;
  Place q = *p;
  size_t n = 0, m;
  if (!c->cu.GraphAddDependencies)
    return cuda_lacks("cuGraphAddDependencies_v2", err);
  for (size_t i = 0; i < p->nafter; i++)
    if (!after_launch[i])
      sorted[n++] = p->after[i];
  m = n;
  for (size_t i = 0; i < p->nafter; i++)
    if (after_launch[i])
      sorted[m++] = p->after[i];
  q.after = sorted;
  q.nafter = n;
  int status = add_node(&q, w);
  for (size_t i = n; !status && i < m; i++)
    status = TRY(c, GraphAddDependencies, (p->graph, &sorted[i], p->node, &edge, 1));
  return status;
}

int
cuda_graph_add(TilertDevice *d, void *graph, const Work *w, void *const *after, const int *after_launch, size_t nafter, void **node,
               TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  const Place p = {c, graph, (const CUgraphNode *)after, nafter, (CUgraphNode *)node, err};
  const int early = w->kind == TILERT_NODE_LAUNCH && w->launch->pdl && nafter;
  CUgraphNode *sorted = early ? calloc(nafter, sizeof(CUgraphNode)) : NULL;
  if (early && !sorted)
    return error_no_memory(err);
  int pushed, status = cuda_enter(c, &pushed, err);
  if (!status) {
    status = early ? add_early(&p, w, after_launch, sorted) : add_node(&p, w);
    cuda_leave(c, pushed);
  }
  free(sorted);
  return status;
}

/* ---- executable graphs ---- */

int
cuda_exec_create(TilertDevice *d, void *graph, void **out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  if (!c->cu.GraphInstantiate)
    return cuda_lacks("cuGraphInstantiateWithFlags", err);
  WITHIN(c, TRY(c, GraphInstantiate, ((CUgraphExec *)out, graph, 0)));
}

void
cuda_exec_destroy(TilertDevice *d, void *exec)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.GraphExecDestroy(exec));
}

int
cuda_exec_set(TilertDevice *d, void *exec, void *node, const TilertLaunch *l, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  const CUkernelParams params = kernel_params(l);
  if (!c->cu.GraphExecKernelNodeSetParams)
    return cuda_lacks("cuGraphExecKernelNodeSetParams_v2", err);
  WITHIN(c, TRY(c, GraphExecKernelNodeSetParams, (exec, node, &params)));
}

int
cuda_exec_label(TilertDevice *d, const char *text, const char **label, TilertError *err)
{
  return blame_name(&cuda_of(d)->blame, text, label, err);
}

static int
launch_current(CudaDevice *c, CUgraphExec exec, const char *label, CUstream stream, TilertError *err)
{
  static const uint32_t no_grid[3] = {0, 0, 0};
  uint64_t number = blame_note(&c->blame, label, stream, no_grid);
  CUresult r = c->cu.GraphLaunch(exec, stream);
  if (r != CUDA_SUCCESS)
    blame_withdraw(&c->blame, number);
  return cuda_result(c, r, "cuGraphLaunch", err);
}

int
cuda_exec_launch(TilertDevice *d, void *exec, const char *label, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, launch_current(c, exec, label, stream, err));
}
