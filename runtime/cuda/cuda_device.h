/* cuda_device.h - private: what the files of the cuda device share. */
#ifndef TILERT_CUDA_DEVICE_H
#define TILERT_CUDA_DEVICE_H
#include "blame.h"
#include "driver.h"

enum { PEERS = 64 };

typedef struct CudaDevice {
  TilertDevice base;
  CudaDriver cu;
  CUdevice device;
  CUcontext context;
  int wrapped;                           /* the context is the caller's, not the primary one */
  _Atomic(CUcontext) peers[PEERS];       /* whose memory is reached; the rest NULL */
  Blame blame;
} CudaDevice;

static inline CudaDevice *
cuda_of(TilertDevice *d)
{
  return (CudaDevice *)d;
}

/* The status and message of the named call, with what the device was lost by, if it is. */
int cuda_result(CudaDevice *c, CUresult r, const char *call, TilertError *err);
#define TRY(dev, call, args) cuda_result((dev), (dev)->cu.call args, "cu" #call, err)
/* TILERT_E_UNAVAILABLE of a function that not every driver has. */
int cuda_lacks(const char *symbol, TilertError *err);

/* Make the device's context current; *pushed: whether leave has to pop. */
int cuda_enter(CudaDevice *c, int *pushed, TilertError *err);
void cuda_leave(CudaDevice *c, int pushed);
/* `return WITHIN(c, TRY(...))` with the context current around the operation. */
#define WITHIN(c, operation)                          \
  int pushed, status = cuda_enter((c), &pushed, err); \
  if (status)                                         \
    return status;                                    \
  status = (operation);                               \
  cuda_leave((c), pushed);                            \
  return status
/* The same where there is no result. */
#define WITHIN_QUIETLY(c, operation)  \
  int pushed;                         \
  if (cuda_enter((c), &pushed, NULL)) \
    return;                           \
  (void)(operation);                  \
  cuda_leave((c), pushed)

/* What a launch says beside its shape; returns how many attributes that is. Of a graph's node, which says elsewhere what it comes after,
 * pdl is none. */
enum { CUDA_ATTRIBUTES = 4 };
unsigned cuda_attributes(const TilertLaunch *l, int of_node, CUlaunchAttribute out[CUDA_ATTRIBUTES]);
CUlaunchAttributeValue cuda_window(const Window *w);
int cuda_wait_for(CudaDevice *c, CUstream stream, TilertError *err);

/* cuda_memory.c */
int cuda_copy_rows(TilertDevice *d, const Copy *c, void *stream, TilertError *err);
int cuda_copy_peer(TilertDevice *d, TilertDevice *to, uint64_t dst, TilertDevice *from, uint64_t src, size_t bytes, void *stream,
                   TilertError *err);
int cuda_peer(TilertDevice *d, TilertDevice *other, int enable, int *can, TilertError *err);
int cuda_reaches(TilertDevice *d, TilertDevice *other);
int cuda_persisting(TilertDevice *d, size_t bytes, int reset, TilertError *err);
int cuda_alloc_host(TilertDevice *d, size_t bytes, uint32_t flags, void **host, uint64_t *address, TilertError *err);
void cuda_release_host(TilertDevice *d, void *host);
int cuda_pin(TilertDevice *d, void *host, size_t bytes, uint64_t *address, TilertError *err);
void cuda_unpin(TilertDevice *d, void *host);
int cuda_adopt(TilertDevice *d, uint64_t address, size_t bytes, TilertError *err);
int cuda_pool_create(TilertDevice *d, const TilertPoolOptions *o, void **out, TilertError *err);
void cuda_pool_destroy(TilertDevice *d, void *pool);
int cuda_pool_info(TilertDevice *d, void *pool, TilertPoolInfo *out, TilertError *err);
int cuda_pool_trim(TilertDevice *d, void *pool, uint64_t keep, TilertError *err);
int cuda_alloc_in(TilertDevice *d, void *pool, size_t bytes, void *stream, uint64_t *address, TilertError *err);
int cuda_release_in(TilertDevice *d, void *pool, uint64_t address, size_t bytes, void *stream, TilertError *err);

/* cuda_stream.c */
int cuda_stream_create(TilertDevice *d, int priority, void **out, TilertError *err);
int cuda_stream_adopt(TilertDevice *d, void *stream, TilertError *err);
void cuda_stream_destroy(TilertDevice *d, void *stream);
int cuda_stream_synchronize(TilertDevice *d, void *stream, TilertError *err);
int cuda_stream_query(TilertDevice *d, void *stream, int *done, TilertError *err);
int cuda_stream_wait(TilertDevice *d, void *stream, void *event, TilertError *err);
int cuda_stream_host(TilertDevice *d, void *stream, void (*f)(void *user), void *user, TilertError *err);
int cuda_stream_window(TilertDevice *d, void *stream, const Window *w, TilertError *err);
int cuda_event_create(TilertDevice *d, int timed, void **out, TilertError *err);
void cuda_event_destroy(TilertDevice *d, void *event);
int cuda_event_record(TilertDevice *d, void *event, void *stream, TilertError *err);
int cuda_event_synchronize(TilertDevice *d, void *event, TilertError *err);
int cuda_event_query(TilertDevice *d, void *event, int *done, TilertError *err);
int cuda_event_elapsed(TilertDevice *d, void *from, void *to, float *ms, TilertError *err);

/* cuda_graph.c */
int cuda_capture_begin(TilertDevice *d, void *stream, TilertError *err);
int cuda_capture_last(TilertDevice *d, void *stream, void **node, TilertError *err);
int cuda_capture_end(TilertDevice *d, void *stream, void **graph, TilertError *err);
int cuda_graph_create(TilertDevice *d, void **out, TilertError *err);
void cuda_graph_destroy(TilertDevice *d, void *graph);
int cuda_graph_add(TilertDevice *d, void *graph, const Work *w, void *const *after, const int *after_launch, size_t nafter, void **node,
                   TilertError *err);
int cuda_exec_create(TilertDevice *d, void *graph, void **out, TilertError *err);
void cuda_exec_destroy(TilertDevice *d, void *exec);
int cuda_exec_set(TilertDevice *d, void *exec, void *node, const TilertLaunch *l, TilertError *err);
int cuda_exec_launch(TilertDevice *d, void *exec, const char *label, void *stream, TilertError *err);
int cuda_exec_label(TilertDevice *d, const char *text, const char **label, TilertError *err);
#endif
