/* cuda_stream.c - streams and events of an NVIDIA GPU. */
#include "cuda_device.h"

int
cuda_stream_create(TilertDevice *d, int priority, void **out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, priority ? TRY(c, StreamCreateWithPriority, ((CUstream *)out, CU_STREAM_NON_BLOCKING, priority))
                     : TRY(c, StreamCreate, ((CUstream *)out, CU_STREAM_NON_BLOCKING)));
}

void
cuda_stream_destroy(TilertDevice *d, void *stream)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.StreamDestroy(stream));
}

int
cuda_stream_synchronize(TilertDevice *d, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, cuda_wait_for(c, stream, err));
}

int
cuda_event_create(TilertDevice *d, int timed, void **out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, EventCreate, ((CUevent *)out, timed ? 0 : CU_EVENT_DISABLE_TIMING)));
}

void
cuda_event_destroy(TilertDevice *d, void *event)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.EventDestroy(event));
}

int
cuda_event_record(TilertDevice *d, void *event, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, EventRecord, (event, stream)));
}

int
cuda_event_synchronize(TilertDevice *d, void *event, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, EventSynchronize, (event)));
}

int
cuda_event_elapsed(TilertDevice *d, void *from, void *to, float *ms, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, EventElapsedTime, (ms, from, to)));
}

/* A stream of another context would fail late, and say nothing of why. The default streams have the context that is current; one of a green
 * context has none to tell, and one of which the driver cannot tell now, since it is being captured, may be taken. */
static int
adopt_current(CudaDevice *c, CUstream stream, TilertError *err)
{
  CUcontext of = NULL;
  CUresult r = c->cu.StreamGetCtx(stream, &of);
  if (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    return TILERT_OK;
  int status = cuda_result(c, r, "cuStreamGetCtx", err);
  if (status)
    return error_prefix(err, status, "tilert_stream_wrap: native is no stream");
  if (of && of != c->context)
    return rt_error_set(err, TILERT_E_ARGUMENT, "tilert_stream_wrap: native is a stream of another context than the device's");
  return TILERT_OK;
}

int
cuda_stream_adopt(TilertDevice *d, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  if (!stream)
    return TILERT_OK;
  WITHIN(c, adopt_current(c, stream, err));
}

static int
query_result(CudaDevice *c, CUresult r, const char *call, int *done, TilertError *err)
{
  *done = r == CUDA_SUCCESS;
  return r == CUDA_ERROR_NOT_READY ? TILERT_OK : cuda_result(c, r, call, err);
}

int
cuda_stream_query(TilertDevice *d, void *stream, int *done, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, query_result(c, c->cu.StreamQuery(stream), "cuStreamQuery", done, err));
}

int
cuda_event_query(TilertDevice *d, void *event, int *done, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, query_result(c, c->cu.EventQuery(event), "cuEventQuery", done, err));
}

int
cuda_stream_wait(TilertDevice *d, void *stream, void *event, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, StreamWaitEvent, (stream, event, 0)));
}

int
cuda_stream_host(TilertDevice *d, void *stream, void (*f)(void *user), void *user, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, LaunchHostFunc, (stream, f, user)));
}

int
cuda_stream_window(TilertDevice *d, void *stream, const Window *w, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  const CUlaunchAttributeValue value = cuda_window(w);
  WITHIN(c, TRY(c, StreamSetAttribute, (stream, CU_LAUNCH_ACCESS_POLICY_WINDOW, &value)));
}
