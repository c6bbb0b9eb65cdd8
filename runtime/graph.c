/* graph.c - graphs: nodes, what makes them executable, and their launches. capture.c makes nodes of what a stream gets.
 *
 * A node is one thing that could be put into a stream (Work), with a launch of its own and references of its buffers, which say whether
 * their memory is still there. Nodes do not change and are shared: an executable graph has those of its graph, and where an argument is
 * updated, a node of its own in the place. Where the device has graphs (DeviceOps.graph_create), each node has its native twin and the
 * driver runs them; else they are run here, in the order of their numbers, which is one that fits, since a node comes after such as were
 * there before it.
 */
#include "graph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- work ---- */

static int
run_copy(TilertDevice *d, void *stream, const Work *w, TilertError *err)
{
  const Copy *c = &w->copy;
  if (w->dst && w->src && w->dst->device != w->src->device)
    return d->ops->copy_peer(d, w->dst->device, c->dst.address, w->src->device, c->src.address, c->width, stream, err);
  if (c->height != 1)
    return d->ops->copy_rows(d, c, stream, err);
  if (c->src.host)
    return d->ops->write(d, c->dst.address, (const void *)(uintptr_t)c->src.address, c->width, stream, err);
  if (c->dst.host)
    return d->ops->read(d, (void *)(uintptr_t)c->dst.address, c->src.address, c->width, stream, err);
  return d->ops->copy(d, c->dst.address, c->src.address, c->width, stream, err);
}

int
work_run(TilertDevice *d, void *stream, const Work *w, TilertError *err)
{
  switch (w->kind) {
  case TILERT_NODE_LAUNCH: return w->launch->empty ? TILERT_OK : d->ops->launch(w->launch, stream, err);
  case TILERT_NODE_COPY: return run_copy(d, stream, w, err);
  case TILERT_NODE_FILL: return d->ops->fill(d, w->at, w->pattern, w->width, w->count, stream, err);
  case TILERT_NODE_HOST: return d->ops->stream_host(d, stream, w->call, w->user, err);
  case TILERT_NODE_EMPTY: break;
  }
  return TILERT_OK;
}

/* ---- nodes ---- */

/* Of arguments that are addresses, the buffers that they lie in, as far as these are ours: a graph is launched when its caller may have
 * destroyed them. */
static void
know_buffers(TilertLaunch *l)
{
  const TilertKernel *k = l->kernel;
  for (size_t i = 0; i < k->nargs; i++) {
    const TilertParam *p = &k->manifest.params[k->first[i]];
    uint64_t address = p->kind == TILERT_PARAM_TENSOR ? l->address[k->first[i]] : 0;
    if (p->kind == TILERT_PARAM_POINTER)
      memcpy(&address, l->blob + k->offset[k->first[i]], sizeof address);
    if (!l->buffer[i] && address)
      l->buffer[i] = buffer_around(k->device, address);
  }
}

GraphNode *
node_new(const Work *w, const TilertNode *after, size_t nafter)
{
  GraphNode *n = calloc(1, sizeof *n + nafter * sizeof *after);
  TilertLaunch *l = n && w->kind == TILERT_NODE_LAUNCH ? launch_copy(w->launch) : NULL;
  if (!n || (w->kind == TILERT_NODE_LAUNCH && !l)) {
    free(n);
    return NULL;
  }
  n->work = *w;
  n->work.launch = n->launch = l;
  if (l)
    know_buffers(l);
  buffer_retain(w->dst);
  buffer_retain(w->src);
  atomic_init(&n->refs, 1);
  n->nafter = nafter;
  if (nafter)
    memcpy(n->after, after, nafter * sizeof *after);
  return n;
}

static GraphNode *
node_retain(GraphNode *n)
{
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  return n;
}

void
node_release(GraphNode *n)
{
  if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
    return;
  tilert_launch_destroy(n->launch);
  buffer_release(n->work.dst);
  buffer_release(n->work.src);
  free(n);
}

/* Room for one more. */
int
graph_reserve(TilertGraph *g, TilertError *err)
{
  if (g->n < g->cap)
    return TILERT_OK;
  size_t cap = g->cap ? 2 * g->cap : 16;
  GraphNode **node = realloc(g->node, cap * sizeof *node);
  if (!node)
    return error_no_memory(err);
  g->node = node;
  g->cap = cap;
  return TILERT_OK;
}

int
graph_new(TilertDevice *dev, void *native, TilertGraph **out, TilertError *err)
{
  TilertGraph *g = calloc(1, sizeof *g);
  if (!g)
    return error_no_memory(err);
  g->device = device_retain(dev);
  g->native = native;
  *out = g;
  return TILERT_OK;
}

int
tilert_graph_create(TilertDevice *dev, TilertGraph **out, TilertError *err)
{
  void *native = NULL;
  NEED(out);
  *out = NULL;
  NEED(dev);
  int status = dev->ops->graph_create ? dev->ops->graph_create(dev, &native, err) : TILERT_OK;
  if (status)
    return status;
  status = graph_new(dev, native, out, err);
  if (status && native)
    dev->ops->graph_destroy(dev, native);
  return status;
}

void
tilert_graph_destroy(TilertGraph *g)
{
  if (!g)
    return;
  for (size_t i = 0; i < g->n; i++)
    node_release(g->node[i]);
  if (g->native)
    g->device->ops->graph_destroy(g->device, g->native);
  device_release(g->device);
  free(g->node);
  free(g);
}

size_t
tilert_graph_count(const TilertGraph *g)
{
  return g ? g->n : 0;
}

static int
no_such_node(size_t node, size_t n, TilertError *err)
{
  return rt_error_set(err, TILERT_E_ARGUMENT, "there is no node %zu: the graph has %zu", node, n);
}

int
tilert_graph_node(const TilertGraph *g, TilertNode node, TilertNodeInfo *out, TilertError *err)
{
  NEED(g);
  NEED(out);
  if (node >= g->n)
    return no_such_node(node, g->n, err);
  const GraphNode *n = g->node[node];
  *out = (TilertNodeInfo){n->work.kind, n->launch ? n->launch->kernel : NULL, n->after, n->nafter};
  return TILERT_OK;
}

/* ---- built by hand ---- */

static int
check_after(const TilertGraph *g, const TilertNode *after, size_t nafter, TilertError *err)
{
  for (size_t i = 0; i < nafter; i++) {
    if (after[i] >= g->n)
      return rt_error_set(err, TILERT_E_ARGUMENT, "after[%zu] is node %u; the graph has %zu", i, after[i], g->n);
    for (size_t j = 0; j < i; j++)
      if (after[j] == after[i])
        return rt_error_set(err, TILERT_E_ARGUMENT, "after[%zu] and after[%zu] are the same node, %u", j, i, after[i]);
  }
  return TILERT_OK;
}

static int
check_device(const TilertGraph *g, const TilertDevice *d, const char *what, TilertError *err)
{
  if (!d || d == g->device)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s is of %s; the graph is of %s%s", what, d->info.spec, g->device->info.spec,
                      device_apart(d, g->device));
}

static int
add_native(TilertGraph *g, GraphNode *n, TilertError *err)
{
  const TilertDevice *d = g->device;
  if (!d->ops->graph_add)
    return TILERT_OK;
  void **after = calloc(n->nafter + 1, sizeof *after);
  int *launch = calloc(n->nafter + 1, sizeof *launch);
  for (size_t i = 0; after && launch && i < n->nafter; i++) {
    const GraphNode *b = g->node[n->after[i]];
    after[i] = b->native;
    launch[i] = b->launch && !b->launch->empty;
  }
  int status = after && launch ? d->ops->graph_add(g->device, g->native, &n->work, after, launch, n->nafter, &n->native, err)
                               : error_no_memory(err);
  free(after);
  free(launch);
  return status;
}

static int
graph_add(TilertGraph *g, const Work *w, const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err)
{
  pthread_mutex_lock(&g->device->lock);
  int status = check_after(g, after, nafter, err);
  if (!status)
    status = graph_reserve(g, err);
  GraphNode *n = status ? NULL : node_new(w, after, nafter);
  if (!status)
    status = n ? add_native(g, n, err) : error_no_memory(err);
  if (!status && node)
    *node = (TilertNode)g->n;
  if (!status)
    g->node[g->n++] = n;
  else
    node_release(n);
  pthread_mutex_unlock(&g->device->lock);
  return status;
}

int
tilert_graph_add_launch(TilertGraph *g, const TilertLaunch *l, const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err)
{
  NEED(g);
  NEED(l);
  NEED(after || !nafter);
  int status = check_device(g, l->kernel->device, "l", err);
  if (!status)
    status = launch_ready(l, err);
  if (!status)
    status = launch_check_gone(l, err);
  return status ? status : graph_add(g, &(Work){.kind = TILERT_NODE_LAUNCH, .launch = l}, after, nafter, node, err);
}

int
tilert_graph_add_copy(TilertGraph *g, const TilertRows *dst, const TilertRows *src, size_t width, size_t height, const TilertNode *after,
                      size_t nafter, TilertNode *node, TilertError *err)
{
  NEED(g);
  NEED(dst);
  NEED(src);
  NEED(after || !nafter);
  Work w;
  int status = copy_work(dst, src, width, height, &w, err);
  if (!status)
    status = check_device(g, dst->buffer ? dst->buffer->device : NULL, "dst", err);
  if (!status)
    status = check_device(g, src->buffer ? src->buffer->device : NULL, "src", err);
  if (!status && (!width || !height))
    w.kind = TILERT_NODE_EMPTY;
  return status ? status : graph_add(g, &w, after, nafter, node, err);
}

int
tilert_graph_add_fill(TilertGraph *g, TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width,
                      const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err)
{
  NEED(g);
  NEED(b);
  NEED(after || !nafter);
  Work w;
  int status = fill_work(b, offset, bytes, pattern, width, &w, err);
  if (!status)
    status = check_device(g, b->device, "b", err);
  if (!status && !bytes)
    w.kind = TILERT_NODE_EMPTY;
  return status ? status : graph_add(g, &w, after, nafter, node, err);
}

int
tilert_graph_add_host(TilertGraph *g, void (*f)(void *user), void *user, const TilertNode *after, size_t nafter, TilertNode *node,
                      TilertError *err)
{
  NEED(g);
  NEED(f);
  NEED(after || !nafter);
  return graph_add(g, &(Work){.kind = TILERT_NODE_HOST, .call = f, .user = user}, after, nafter, node, err);
}

int
tilert_graph_add_empty(TilertGraph *g, const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err)
{
  NEED(g);
  NEED(after || !nafter);
  return graph_add(g, &(Work){.kind = TILERT_NODE_EMPTY}, after, nafter, node, err);
}

/* ---- executable graphs ---- */

struct TilertGraphExec {
  TilertDevice *device;
  void *native;
  const char *label;                 /* what it is, for faults; kept by the device. NULL: none is needed */
  pthread_mutex_t lock;              /* of what follows */
  uint64_t seen;                     /* device->gone when all buffers were last found to be there */
  int looked, others;                /* they were; buffers of other devices are among them */
  size_t n;
  GraphNode *node[];
};

static int
is_of_another(const TilertGraphExec *x, const TilertBuffer *b)
{
  return b && b->device != x->device;
}

static void
find_others(TilertGraphExec *x)
{
  for (size_t i = 0; i < x->n; i++) {
    const GraphNode *n = x->node[i];
    x->others |= is_of_another(x, n->work.dst) || is_of_another(x, n->work.src);
    for (size_t j = 0; n->launch && j < n->launch->kernel->nargs; j++)
      x->others |= is_of_another(x, n->launch->buffer[j]);
  }
}

/* "the graph of 3 nodes (kernels axpy, wild)" */
static int
label_of(TilertGraphExec *x, TilertError *err)
{
  char text[TILERT_NAME_MAX];
  size_t at = (size_t)snprintf(text, sizeof text, "a kernel of the graph of %zu nodes", x->n);
  const TilertKernel *last = NULL;
  for (size_t i = 0, said = 0; i < x->n && at < 100; i++) {
    const TilertKernel *k = x->node[i]->launch ? x->node[i]->launch->kernel : last;
    if (k == last)
      continue;
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.20s", said++ ? ", " : ": ", k->manifest.kernel);
    last = k;
  }
  return x->device->ops->exec_label ? x->device->ops->exec_label(x->device, text, &x->label, err) : TILERT_OK;
}

int
tilert_graph_instantiate(TilertGraph *g, TilertGraphExec **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(g);
  TilertDevice *d = g->device;
  pthread_mutex_lock(&d->lock);
  TilertGraphExec *x = calloc(1, sizeof *x + g->n * sizeof(GraphNode *));
  int status = x ? TILERT_OK : error_no_memory(err);
  if (!status && d->ops->exec_create)
    status = d->ops->exec_create(d, g->native, &x->native, err);
  for (size_t i = 0; !status && i < g->n; i++)
    x->node[x->n++] = node_retain(g->node[i]);
  pthread_mutex_unlock(&d->lock);
  if (status) {
    free(x);
    return status;
  }
  x->device = device_retain(d);
  pthread_mutex_init(&x->lock, NULL);
  find_others(x);
  status = label_of(x, err);
  if (status)
    tilert_graph_exec_destroy(x);
  else
    *out = x;
  return status;
}

void
tilert_graph_exec_destroy(TilertGraphExec *x)
{
  if (!x)
    return;
  if (x->native)
    x->device->ops->exec_destroy(x->device, x->native);
  for (size_t i = 0; i < x->n; i++)
    node_release(x->node[i]);
  pthread_mutex_destroy(&x->lock);
  device_release(x->device);
  free(x);
}

static int
is_gone(const TilertBuffer *b)
{
  return b && atomic_load_explicit(&b->gone, memory_order_acquire);
}

static int
check_node(const GraphNode *n, size_t i, TilertError *err)
{
  const char *which = is_gone(n->work.dst) ? "dst" : is_gone(n->work.src) ? "src" : NULL;
  if (which)
    return rt_error_set(err, TILERT_E_ARGUMENT, "node %zu, a %s: the buffer of %s has been destroyed", i,
                        n->work.kind == TILERT_NODE_FILL ? "fill" : "copy", n->work.kind == TILERT_NODE_FILL ? "b" : which);
  if (n->launch && launch_check_gone(n->launch, err))
    return error_prefix(err, TILERT_E_ARGUMENT, "node %zu", i);
  return TILERT_OK;
}

/* All buffers, where one may have been destroyed since they were last looked at. */
static int
check_buffers(TilertGraphExec *x, TilertError *err)
{
  const uint64_t gone = atomic_load_explicit(&x->device->gone, memory_order_acquire);
  int status = TILERT_OK;
  if (x->looked && !x->others && gone == x->seen)
    return TILERT_OK;
  for (size_t i = 0; !status && i < x->n; i++)
    status = check_node(x->node[i], i, err);
  if (!status) {
    x->seen = gone;
    x->looked = 1;
  }
  return status;
}

static int
run_nodes(const TilertGraphExec *x, void *stream, TilertError *err)
{
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < x->n; i++) {
    status = work_run(x->device, stream, &x->node[i]->work, err);
    if (status)
      error_prefix(err, status, "node %zu", i);
  }
  return status;
}

int
tilert_graph_launch(TilertGraphExec *x, TilertStream *s, TilertError *err)
{
  NEED(x);
  TilertDevice *d = x->device;
  if (s && s->device != d)
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "%s: the graph is of %s; the stream is of %s%s", __func__, d->info.spec, s->device->info.spec,
                        device_apart(d, s->device));
  if (tilert_stream_capturing(s))
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is being captured; a graph is no node of another one", __func__);
  pthread_mutex_lock(&x->lock);
  int status = check_buffers(x, err);
  if (!status && x->native)
    status = d->ops->exec_launch(d, x->native, x->label, s ? s->native : NULL, err);
  else if (!status)
    status = run_nodes(x, s ? s->native : NULL, err);
  pthread_mutex_unlock(&x->lock);
  return status;
}

/* ---- updates ---- */

/* The launch at the place of a node, and a copy of it, or of another one, which is to be changed. */
static int
begin_update(const TilertGraphExec *x, TilertNode node, const TilertLaunch *other, GraphNode **out, TilertError *err)
{
  if (node >= x->n)
    return no_such_node(node, x->n, err);
  GraphNode *n = x->node[node];
  if (!n->launch)
    return rt_error_set(err, TILERT_E_ARGUMENT, "node %u is no launch", node);
  if (n->launch->empty)
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "node %u, kernel %s: it was added with an empty grid, of which there is no launch to update",
                        node, n->launch->kernel->manifest.kernel);
  Work w = n->work;
  w.launch = other ? other : w.launch;
  *out = node_new(&w, n->after, n->nafter);
  if (!*out)
    return error_no_memory(err);
  (*out)->native = n->native;
  return TILERT_OK;
}

static int
end_update(TilertGraphExec *x, TilertNode node, GraphNode *n, int status, TilertError *err)
{
  if (!status && n->launch->empty)
    status = rt_error_set(err, TILERT_E_ARGUMENT,
                          "kernel %s: a launch of a graph has a grid without zeros", n->launch->kernel->manifest.kernel);
  if (!status)
    status = launch_ready(n->launch, err);
  if (!status && x->native)
    status = x->device->ops->exec_set(x->device, x->native, n->native, n->launch, err);
  if (status) {
    node_release(n);
    return error_prefix(err, status, "node %u", node);
  }
  know_buffers(n->launch);                   /* of another argument */
  node_release(x->node[node]);
  x->node[node] = n;
  x->looked = 0;
  find_others(x);
  return TILERT_OK;
}

int
tilert_graph_set_arg(TilertGraphExec *x, TilertNode node, size_t index, const TilertArg *arg, TilertError *err)
{
  NEED(x);
  NEED(arg);
  GraphNode *n = NULL;
  pthread_mutex_lock(&x->lock);
  int status = begin_update(x, node, NULL, &n, err);
  if (!status)
    status = end_update(x, node, n, tilert_launch_set_arg(n->launch, index, arg, err), err);
  pthread_mutex_unlock(&x->lock);
  return status;
}

int
tilert_graph_set_grid(TilertGraphExec *x, TilertNode node, const uint32_t grid[3], TilertError *err)
{
  NEED(x);
  NEED(grid);
  GraphNode *n = NULL;
  pthread_mutex_lock(&x->lock);
  int status = begin_update(x, node, NULL, &n, err);
  if (!status)
    status = end_update(x, node, n, tilert_launch_set_grid(n->launch, grid, err), err);
  pthread_mutex_unlock(&x->lock);
  return status;
}

static int
same_window(const Window *a, const Window *b)
{
  if (a->bytes != b->bytes || !a->bytes)      /* without bytes there is nothing else in it */
    return a->bytes == b->bytes;
  return a->address == b->address && a->ratio == b->ratio && a->hit == b->hit && a->miss == b->miss;
}

/* The driver changes what a node launches, but not how. */
static int
same_attributes(const TilertLaunch *a, const TilertLaunch *b, TilertError *err)
{
  const char *which = memcmp(a->cluster, b->cluster, sizeof a->cluster) != 0 ? "clusters"
                      : a->pdl != b->pdl ? "dependent launch"
                      : a->has_priority != b->has_priority || (a->has_priority && a->priority != b->priority) ? "priority"
                      : !same_window(&a->window, &b->window) ? "window" : NULL;
  if (!which)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s has another %s than the launch that it is for, and that cannot be changed",
                      b->kernel->manifest.kernel, which);
}

int
tilert_graph_set_launch(TilertGraphExec *x, TilertNode node, const TilertLaunch *l, TilertError *err)
{
  NEED(x);
  NEED(l);
  GraphNode *n = NULL;
  if (l->kernel->device != x->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: l is of %s; the graph is of %s%s", __func__, l->kernel->device->info.spec,
                        x->device->info.spec, device_apart(l->kernel->device, x->device));
  pthread_mutex_lock(&x->lock);
  int status = begin_update(x, node, l, &n, err);
  if (!status) {
    int fits = same_attributes(x->node[node]->launch, l, err);
    status = end_update(x, node, n, fits ? fits : launch_check_gone(l, err), err);
  }
  pthread_mutex_unlock(&x->lock);
  return status;
}
