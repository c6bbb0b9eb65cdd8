/* capture.c - streams whose work becomes nodes of a graph.
 *
 * A capture knows the streams that belong to it: the one that it was begun in, and those that waited for an event that was recorded in it.
 * Each stream has a tail, the nodes that what comes next in it comes after: the last one, and after a wait those of the event, too. Where
 * the device captures itself, work goes to the driver as always, and the node that the driver made of it is asked for; the rest is the
 * same. All of this is under the device's lock; a launch into a stream that is not captured looks at one pointer.
 */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

typedef struct Tail { size_t n; TilertNode node[]; } Tail;

typedef struct Capture {
  struct Capture *next;
  uint64_t id;
  TilertGraph *graph;
  TilertStream **stream;             /* the first: it was begun in */
  size_t n, cap;
} Capture;

static Capture *
capture_of(const TilertStream *s)
{
  return s ? atomic_load_explicit(&s->capture, memory_order_relaxed) : NULL;
}

/* ---- tails ---- */

void
tail_free(Tail *t)
{
  free(t);
}

/* The nodes of both, each once; either may be NULL. NULL: no memory. */
static Tail *
tail_join(const Tail *a, const Tail *b)
{
  const size_t na = a ? a->n : 0, nb = b ? b->n : 0;
  Tail *t = malloc(sizeof *t + (na + nb) * sizeof(TilertNode));
  if (!t)
    return NULL;
  if (na)
    memcpy(t->node, a->node, na * sizeof(TilertNode));
  t->n = na;
  for (size_t i = 0; i < nb; i++) {
    size_t j = 0;
    while (j < na && a->node[j] != b->node[i])
      j++;
    if (j == na)
      t->node[t->n++] = b->node[i];
  }
  return t;
}

static int
set_tail(Tail **at, Tail *t, TilertError *err)
{
  if (!t)
    return error_no_memory(err);
  free(*at);
  *at = t;
  return TILERT_OK;
}

/* ---- what is put into a stream ---- */

/* Where the driver captures, it gets the work, too. */
static int
capture_native(TilertStream *s, GraphNode *n, TilertError *err)
{
  TilertDevice *d = s->device;
  if (!d->ops->capture_begin)
    return TILERT_OK;
  if (n->launch)
    n->launch->captured = 1;
  int status = work_run(d, s->native, &n->work, err);
  return status ? status : d->ops->capture_last(d, s->native, &n->native, err);
}

static int
capture_work(Capture *c, TilertStream *s, const Work *w, TilertError *err)
{
  TilertGraph *g = c->graph;
  const TilertNode number = (TilertNode)g->n;
  Tail *tail = malloc(sizeof *tail + sizeof number);
  GraphNode *n = node_new(w, s->tail ? s->tail->node : NULL, s->tail ? s->tail->n : 0);
  int status = tail && n ? graph_reserve(g, err) : error_no_memory(err);
  if (!status)
    status = capture_native(s, n, err);
  if (status) {
    free(tail);
    node_release(n);
    return status;
  }
  g->node[g->n++] = n;
  tail->n = 1;
  tail->node[0] = number;
  return set_tail(&s->tail, tail, err);
}

int
work_put(TilertDevice *d, TilertStream *s, const Work *w, TilertError *err)
{
  if (!capture_of(s))
    return work_run(d, s ? s->native : NULL, w, err);
  pthread_mutex_lock(&d->lock);
  Capture *c = capture_of(s);
  int status = c ? capture_work(c, s, w, err) : TILERT_OK;
  pthread_mutex_unlock(&d->lock);
  return c ? status : work_run(d, s->native, w, err);
}

/* ---- events ---- */

int
capture_event(TilertEvent *e, TilertStream *s, TilertError *err)
{
  TilertDevice *d = e->device;
  int status = TILERT_OK;
  pthread_mutex_lock(&d->lock);
  const Capture *c = capture_of(s);
  if (c)
    status = set_tail(&e->tail, tail_join(s->tail, NULL), err);
  if (!status)
    e->captured = c ? c->id : 0;
  pthread_mutex_unlock(&d->lock);
  return status;
}

static int
join_stream(Capture *c, TilertStream *s, TilertError *err)
{
  if (c->n == c->cap) {
    size_t cap = c->cap ? 2 * c->cap : 4;
    TilertStream **stream = realloc(c->stream, cap * sizeof(TilertStream *));
    if (!stream)
      return error_no_memory(err);
    c->stream = stream;
    c->cap = cap;
  }
  c->stream[c->n++] = stream_retain(s);
  atomic_store(&s->capture, c);
  return TILERT_OK;
}

/* The event was recorded in a capture: the stream comes into it. */
static int
wait_captured(TilertStream *s, const TilertEvent *e, TilertError *err)
{
  static const char what[] = "tilert_stream_wait: the event was recorded in a stream that is being captured";
  Capture *c = e->device->captures, *own = capture_of(s);
  while (c && c->id != e->captured)
    c = c->next;
  if (!c)
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "tilert_stream_wait: the event was recorded in a capture, which has ended: nothing runs that"
                        " it could wait for");
  if (!s || s->device != e->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s; %s cannot join it", what, s ? "a stream of another device" : "the default stream");
  if (own && own != c)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s; the stream belongs to another capture", what);
  Tail *t = tail_join(own ? s->tail : NULL, e->tail);
  int status = t ? TILERT_OK : error_no_memory(err);
  if (!status && !own)
    status = join_stream(c, s, err);
  if (status) {
    free(t);
    return status;
  }
  return set_tail(&s->tail, t, err);
}

int
capture_wait(TilertStream *s, TilertEvent *e, int *captured, TilertError *err)
{
  TilertDevice *d = e->device;
  int status = TILERT_OK;
  pthread_mutex_lock(&d->lock);
  *captured = e->captured != 0;
  if (*captured)
    status = wait_captured(s, e, err);
  else if (capture_of(s))
    status = rt_error_set(err, TILERT_E_ARGUMENT,
                          "tilert_stream_wait: the stream is being captured; the event was not recorded in its capture,"
                          " so nothing of the graph could come after it");
  pthread_mutex_unlock(&d->lock);
  return status;
}

int
event_not_captured(const TilertEvent *e, const char *function, TilertError *err)
{
  pthread_mutex_lock(&e->device->lock);
  const int captured = e->captured != 0;
  pthread_mutex_unlock(&e->device->lock);
  if (!captured)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT,
                      "%s: the event was recorded in a stream that was being captured: there is nothing to wait for",
                      function);
}

int
capture_allows_wait(TilertDevice *d, TilertStream *s, const char *function, TilertError *err)
{
  pthread_mutex_lock(&d->lock);
  const int captured = s ? capture_of(s) != NULL : d->captures != NULL;
  pthread_mutex_unlock(&d->lock);
  if (!captured)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s: %s being captured, and what is put there does not run; end the capture first"
                      " (tilert_stream_capture_end)", function, s ? "the stream is" : "a stream of the device is");
}

/* ---- beginning and end ---- */

int
tilert_stream_capturing(const TilertStream *s)
{
  return capture_of(s) != NULL;
}

static void
capture_free(Capture *c)
{
  for (size_t i = 0; i < c->n; i++) {
    TilertStream *s = c->stream[i];
    atomic_store(&s->capture, NULL);
    free(s->tail);
    s->tail = NULL;
    tilert_stream_destroy(s);
  }
  free(c->stream);
  free(c);
}

static int
begin(TilertStream *s, TilertError *err)
{
  TilertDevice *d = s->device;
  Capture *c = calloc(1, sizeof *c);
  if (!c)
    return error_no_memory(err);
  int status = graph_new(d, NULL, &c->graph, err);
  if (!status)
    status = join_stream(c, s, err);
  if (!status && d->ops->capture_begin)
    status = d->ops->capture_begin(d, s->native, err);
  if (status) {
    tilert_graph_destroy(c->graph);
    capture_free(c);
    return status;
  }
  c->id = ++d->ncaptures;
  c->next = d->captures;
  d->captures = c;
  return TILERT_OK;
}

int
tilert_stream_capture_begin(TilertStream *s, TilertError *err)
{
  NEED(s);
  TilertDevice *d = s->device;
  if (d->ops->capture_begin && !s->native)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: s is the default stream, which cannot be captured", __func__);
  pthread_mutex_lock(&d->lock);
  int status = capture_of(s) ? rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is being captured already", __func__) : begin(s, err);
  pthread_mutex_unlock(&d->lock);
  return status;
}

/* Marks the nodes that a tail comes after, itself among them. */
static void
mark(const TilertGraph *g, const Tail *t, unsigned char *seen)
{
  for (size_t i = 0; t && i < t->n; i++)
    seen[t->node[i]] = 1;
  for (size_t i = g->n; i-- > 0;)
    for (size_t j = 0; seen[i] && j < g->node[i]->nafter; j++)
      seen[g->node[i]->after[j]] = 1;
}

/* What the other streams of the capture have done last has to be waited for in the first. */
static int
check_joined(const Capture *c, TilertError *err)
{
  unsigned char *seen = calloc(c->graph->n + 1, 1);
  int status = seen ? TILERT_OK : error_no_memory(err);
  if (!status)
    mark(c->graph, c->stream[0]->tail, seen);
  for (size_t i = 1; !status && i < c->n; i++)
    for (size_t j = 0; !status && c->stream[i]->tail && j < c->stream[i]->tail->n; j++)
      if (!seen[c->stream[i]->tail->node[j]])
        status = rt_error_set(err, TILERT_E_ARGUMENT,
                              "the capture has another stream, of which node %u is the last: the stream that it was begun"
                              " in has to wait for that (tilert_event_record, tilert_stream_wait) in front of the end",
                              c->stream[i]->tail->node[j]);
  free(seen);
  return status;
}

/* Out of the device's captures, whatever becomes of it. */
static int
end(TilertStream *s, Capture *c, TilertGraph **out, TilertError *err)
{
  TilertDevice *d = s->device;
  Capture **at = &d->captures;
  TilertError native = {0};
  while (*at != c)
    at = &(*at)->next;
  *at = c->next;
  int status = check_joined(c, err);
  int failed = d->ops->capture_end ? d->ops->capture_end(d, s->native, &c->graph->native, &native) : TILERT_OK;
  if (!status && failed) {
    status = failed;
    if (err)
      *err = native;
  }
  if (status)
    tilert_graph_destroy(c->graph);
  else
    *out = c->graph;
  capture_free(c);
  return status;
}

int
tilert_stream_capture_end(TilertStream *s, TilertGraph **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(s);
  TilertDevice *d = s->device;
  int status;
  pthread_mutex_lock(&d->lock);
  Capture *c = capture_of(s);
  if (!c)
    status = rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is not being captured", __func__);
  else if (c->stream[0] != s)
    status = rt_error_set(err, TILERT_E_ARGUMENT, "%s: the capture was begun in another stream, and ends there", __func__);
  else
    status = end(s, c, out, err);
  pthread_mutex_unlock(&d->lock);
  return status;
}
