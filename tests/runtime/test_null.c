/* Every function of the installed headers with each of its pointers NULL, and with counts that cannot be: a status and a sentence, or
 * nothing, never a crash. The table below names every function that they declare; one that is missing fails the test. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>
#include "aot.h"
#include "check.h"
#include "jit.h"
#include "kernels.h"

static TilertError err, *const e = &err;
static int hole;                     /* which pointer is NULL; 0: none */
#define P(n, pointer) (hole == (n) ? NULL : (pointer))

/* ---- what is done with each function ---- */

static char seen[300][64];
static int nseen;

static void
note(const char *name)
{
  snprintf(seen[nseen++], sizeof seen[0], "%s", name);
}

static void
judge(const char *name, char want, int last_hole, int status)
{
  int expected = want == 'a' ? TILERT_E_ARGUMENT : want == 'u' ? TILERT_E_UNAVAILABLE : 0;
  int said = err.status == expected && err.message[0];
  if (status == expected && (!expected || said || last_hole))
    return;
  fprintf(stderr, "%s with pointer %d NULL: status %d, expected %d; \"%s\"\n", name, hole, status, expected, err.message);
  exit(1);
}

/* ROW(function, statuses, call): a character for the call as it is and for each of its pointers NULL: 0 success, a argument, u
 * unavailable; the last pointer is the error, without which there is no sentence. ANSWER: the same for functions without a status: 1 an
 * answer, 0 none. QUIET: for those without a result. */
#define ROW(name, wants, call)                       \
  for (hole = 0; (wants)[hole]; hole++) {            \
    memset(&err, 0, sizeof err);                     \
    int status_ = (call);                            \
    judge(#name, (wants)[hole], !(wants)[hole + 1], status_); \
  }                                                  \
  note(#name)
#define ANSWER(name, wants, call)                                                            \
  for (hole = 0; (wants)[hole]; hole++) {                                                    \
    int answer_ = (call) != 0;                                                               \
    if (answer_ != (wants)[hole] - '0') {                                                    \
      fprintf(stderr, "%s with pointer %d NULL answers %d\n", #name, hole, answer_);         \
      exit(1);                                                                               \
    }                                                                                        \
  }                                                                                          \
  note(#name)
#define QUIET(name, pointers, call)                  \
  for (hole = 0; hole <= (pointers); hole++)         \
    call;                                            \
  note(#name)

/* ---- things to call with ---- */

static const char source[] = "kernel k(x: *f32, n: i32, const B: i32 = 32) tune(B=[32, 64]) {\n"
                             "  let i = arange(0, B);\n  store(x + i, load(x + i, mask=i < n) + 1.0, mask=i < n);\n}\n";
static const uint32_t one[3] = {1, 1, 1}, warp[3] = {32, 1, 1};
static TilertDevice *dev, *opened;
static TilertStream *stream, *made_stream;
static TilertEvent *from, *to, *made_event;
static TilertBuffer *x, *made_buffer;
static TilertModule *module, *made_module;
static TilertKernel *kernel;
static TilertLaunch *launch, *made_launch;
static TilertPool *pool, *made_pool;
static TilertGraph *graph, *made_graph;
static TilertGraphExec *exec, *made_exec;
static TilejitProgram *program, *made_program;
static TilejitKernel *jit_kernel;
static TilejitCall *call, *made_call;
static TilejitTuning *tuning, *made_tuning;
static TilertArg axpy_args[4], k_args[2];
static const char *const names[] = {"x", "n"};
static char text[64], path[64];

/* status, after what the call made is gone */
#define FREED(status, made, destroy) (last = (status), destroy(made), made = NULL, last)
static int last;

static int
run_nothing(void *user, TilertStream *s, TilertError *to_fill)
{
  return 0;
}

static void
call_nothing(void *user)
{
}

static int
grid_of(void *user, TilejitKernel *k, uint32_t grid[3])
{
  memcpy(grid, one, sizeof one);
  return 0;
}

static void
open_all(void)
{
  CHECK_OK(tilert_device_open("sim", NULL, &dev, e));
  CHECK_OK(tilert_stream_create(dev, &stream, e));
  CHECK_OK(tilert_event_create(dev, &from, e));
  CHECK_OK(tilert_event_create(dev, &to, e));
  CHECK_OK(tilert_event_record(from, NULL, e));
  CHECK_OK(tilert_event_record(to, NULL, e));
  CHECK_OK(tilert_buffer_create(dev, 1024, &x, e));
  CHECK_OK(tilert_buffer_fill(x, 0, 1024, 0, 4, NULL, e));
  CHECK_OK(tilert_module_load(dev, axpy_ptx, strlen(axpy_ptx), NULL, 0, &module, e));
  CHECK_OK(tilert_module_kernel(module, "axpy", &kernel, e));
  axpy_args[0] = (TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = 1};
  axpy_args[1] = axpy_args[2] = k_args[0] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = x};
  axpy_args[3] = k_args[1] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = 7};
  CHECK_OK(tilert_launch_create(kernel, one, axpy_args, 4, &launch, e));
  CHECK_OK(tilert_pool_create(dev, NULL, &pool, e));
  CHECK_OK(tilert_graph_create(dev, &graph, e));
  CHECK_OK(tilert_graph_add_launch(graph, launch, NULL, 0, NULL, e));
  CHECK_OK(tilert_graph_instantiate(graph, &exec, e));
  CHECK_OK(tilejit_program_create(dev, "k.tile", source, strlen(source), NULL, &program, e));
  CHECK_OK(tilejit_kernel(program, "k", NULL, 0, &jit_kernel, e));
  CHECK_OK(tilejit_call_create(jit_kernel, one, NULL, k_args, 2, &call, e));
  CHECK_OK(tilejit_tune(program, "k", NULL, 0, NULL, grid_of, NULL, k_args, 2, NULL, &tuning, e));
  strcpy(path, "/tmp/tilec-null-XXXXXX");
  int fd = mkstemp(path);
  CHECK(fd >= 0 && write(fd, source, strlen(source)) == (ssize_t)strlen(source) && !close(fd));
}

static void
close_all(void)
{
  unlink(path);
  tilejit_tuning_free(tuning);
  tilejit_call_destroy(call);
  tilejit_program_destroy(program);
  tilert_graph_exec_destroy(exec);
  tilert_graph_destroy(graph);
  tilert_pool_destroy(pool);
  tilert_launch_destroy(launch);
  tilert_module_destroy(module);
  tilert_buffer_destroy(x);
  tilert_event_destroy(from);
  tilert_event_destroy(to);
  tilert_stream_destroy(stream);
  tilert_device_close(dev);
}

/* ---- the table ---- */

static void
test_devices(void)
{
  TilertOptions o;
  TilertStats stats;
  ANSWER(tilert_status_name, "1", tilert_status_name(99));
  QUIET(tilert_options_default, 1, tilert_options_default(P(1, &o)));
  CHECK_FAILS(tilert_device_wrap(text, NULL, e), TILERT_E_ARGUMENT, "tilert_device_wrap: out is NULL");
  note("tilert_device_wrap");
  ROW(tilert_device_open, "00a0", FREED(tilert_device_open("sim", P(1, &o), P(2, &opened), P(3, e)), opened, tilert_device_close));
  ANSWER(tilert_device_retain, "10", tilert_device_retain(P(1, dev)));
  QUIET(tilert_device_close, 1, tilert_device_close(P(1, dev)));
  QUIET(tilert_cuda_count, 0, tilert_cuda_count());
  ANSWER(tilert_device_info, "10", tilert_device_info(P(1, dev)));
  ROW(tilert_device_synchronize, "0a0", tilert_device_synchronize(P(1, dev), P(2, e)));
  ROW(tilert_device_stats, "0aa0", tilert_device_stats(P(1, dev), P(2, &stats), P(3, e)));
  ROW(tilert_device_stats_reset, "0a0", tilert_device_stats_reset(P(1, dev), P(2, e)));
  QUIET(tilert_device_cancel, 1, tilert_device_cancel(P(1, dev)));
  CHECK(tilert_device_fault(NULL, text, sizeof text) == 0 && !text[0]);
  ANSWER(tilert_version, "1", tilert_version());
  QUIET(tilert_range_push, 2, tilert_range_push(P(1, dev), P(2, "range")));
  QUIET(tilert_range_pop, 1, tilert_range_pop(P(1, dev)));
  ROW(tilert_version_check, "00", tilert_version_check(0, P(1, e)));
  ROW(tilert_device_set_persisting, "0a0", tilert_device_set_persisting(P(1, dev), 0, P(2, e)));
  ROW(tilert_device_reset_persisting, "0a0", tilert_device_reset_persisting(P(1, dev), P(2, e)));
  ROW(tilert_peer_possible, "0aaa0", tilert_peer_possible(P(1, dev), P(2, dev), P(3, &last), P(4, e)));
  ROW(tilert_peer_enable, "0aa0", tilert_peer_enable(P(1, dev), P(2, dev), P(3, e)));
}

static void
test_streams(void)
{
  float ms;
  ROW(tilert_stream_create, "0aa0",
      FREED(tilert_stream_create(P(1, dev), P(2, &made_stream), P(3, e)), made_stream, tilert_stream_destroy));
  ROW(tilert_stream_wrap, "0a0a0",
      FREED(tilert_stream_wrap(P(1, dev), P(2, text), P(3, &made_stream), P(4, e)), made_stream, tilert_stream_destroy));
  ROW(tilert_stream_create_priority, "0aa0",
      FREED(tilert_stream_create_priority(P(1, dev), 0, P(2, &made_stream), P(3, e)), made_stream, tilert_stream_destroy));
  ROW(tilert_stream_query, "0aa0", tilert_stream_query(P(1, stream), P(2, &last), P(3, e)));
  ROW(tilert_stream_wait, "00a0", tilert_stream_wait(P(1, stream), P(2, from), P(3, e)));
  ROW(tilert_stream_host, "0aa00", tilert_stream_host(P(1, stream), P(2, call_nothing), P(3, text), P(4, e)));
  ROW(tilert_event_create_untimed, "0aa0",
      FREED(tilert_event_create_untimed(P(1, dev), P(2, &made_event), P(3, e)), made_event, tilert_event_destroy));
  ROW(tilert_event_query, "0aa0", tilert_event_query(P(1, from), P(2, &last), P(3, e)));
  const TilertWindow window = {.buffer = x, .bytes = 4};
  ROW(tilert_stream_set_window, "0a00", tilert_stream_set_window(P(1, stream), P(2, &window), P(3, e)));
  ANSWER(tilert_stream_capturing, "00", tilert_stream_capturing(P(1, stream)));
  ROW(tilert_stream_capture_begin, "0a0", (tilert_stream_capture_end(stream, &made_graph, NULL), tilert_graph_destroy(made_graph),
                                           made_graph = NULL, tilert_stream_capture_begin(P(1, stream), P(2, e))));
  ROW(tilert_stream_capture_end, "0aa0", FREED((tilert_stream_capture_begin(stream, NULL),
                                                tilert_stream_capture_end(P(1, stream), P(2, &made_graph), P(3, e))), made_graph, tilert_graph_destroy));
  QUIET(tilert_stream_destroy, 1, tilert_stream_destroy(NULL));
  ROW(tilert_stream_synchronize, "0a0", tilert_stream_synchronize(P(1, stream), P(2, e)));
  ANSWER(tilert_stream_native, "10", tilert_stream_native(P(1, stream)));
  ROW(tilert_event_create, "0aa0", FREED(tilert_event_create(P(1, dev), P(2, &made_event), P(3, e)), made_event, tilert_event_destroy));
  QUIET(tilert_event_destroy, 1, tilert_event_destroy(NULL));
  ROW(tilert_event_record, "0a00", tilert_event_record(P(1, from), P(2, stream), P(3, e)));
  CHECK_OK(tilert_event_record(to, NULL, e));
  ROW(tilert_event_synchronize, "0a0", tilert_event_synchronize(P(1, from), P(2, e)));
  ROW(tilert_event_elapsed, "0aaa0", tilert_event_elapsed(P(1, from), P(2, to), P(3, &ms), P(4, e)));
}

static void
test_buffers(void)
{
  ROW(tilert_buffer_create, "0aa0",
      FREED(tilert_buffer_create(P(1, dev), 16, P(2, &made_buffer), P(3, e)), made_buffer, tilert_buffer_destroy));
  QUIET(tilert_buffer_destroy, 1, tilert_buffer_destroy(NULL));
  ANSWER(tilert_buffer_address, "10", tilert_buffer_address(P(1, x)));
  ANSWER(tilert_buffer_size, "10", tilert_buffer_size(P(1, x)));
  ROW(tilert_buffer_write, "0aa00", tilert_buffer_write(P(1, x), 0, P(2, text), 8, P(3, stream), P(4, e)));
  ROW(tilert_buffer_read, "0aa00", tilert_buffer_read(P(1, x), 0, P(2, text), 8, P(3, stream), P(4, e)));
  CHECK_FAILS(tilert_buffer_create(dev, SIZE_MAX, &made_buffer, e), TILERT_E_MEMORY, "out of memory for 18446744073709551615 bytes");
  ROW(tilert_buffer_write, "000", tilert_buffer_write(x, 0, P(1, text), 0, P(2, stream), e));
  ROW(tilert_buffer_read, "000", tilert_buffer_read(x, 0, P(1, text), 0, P(2, stream), e));
  ROW(tilert_buffer_copy, "0aa00", tilert_buffer_copy(P(1, x), 0, P(2, x), 8, 8, P(3, stream), P(4, e)));
  ROW(tilert_buffer_fill, "0a00", tilert_buffer_fill(P(1, x), 0, 1024, 0, 4, P(2, stream), P(3, e)));
}

static void
test_more_memory(void)
{
  static _Alignas(16) char host[64];
  char bytes[4] = {0};
  TilertPoolInfo info;
  TilertPoolOptions o = {.size = sizeof o};
  ROW(tilert_buffer_part, "0aa0", FREED(tilert_buffer_part(P(1, x), 0, 4, P(2, &made_buffer), P(3, e)), made_buffer, tilert_buffer_destroy));
  ROW(tilert_buffer_wrap, "0aa0",
      FREED(tilert_buffer_wrap(P(1, dev), tilert_buffer_address(x), 4, P(2, &made_buffer), P(3, e)), made_buffer, tilert_buffer_destroy));
  ROW(tilert_buffer_create_host, "0aa0",
      FREED(tilert_buffer_create_host(P(1, dev), 4, 0, P(2, &made_buffer), P(3, e)), made_buffer, tilert_buffer_destroy));
  ROW(tilert_buffer_pin, "0aaa0",
      FREED(tilert_buffer_pin(P(1, dev), P(2, host), 4, P(3, &made_buffer), P(4, e)), made_buffer, tilert_buffer_destroy));
  ANSWER(tilert_buffer_host, "00", tilert_buffer_host(P(1, x)));
  CHECK_FAILS(tilert_buffer_pin(dev, host, SIZE_MAX, &made_buffer, e), TILERT_E_ARGUMENT, "tilert_buffer_pin: host: 18446744073709551615 bytes");
  CHECK(strstr(err.message, "not so many addresses"));
  const TilertRows rows = {.buffer = x}, from_host = {.host = bytes};
  ROW(tilert_copy_rows, "0aa00", tilert_copy_rows(P(1, &rows), P(2, &from_host), 4, 1, P(3, stream), P(4, e)));
  ROW(tilert_pool_create, "0a0a0", FREED(tilert_pool_create(P(1, dev), P(2, &o), P(3, &made_pool), P(4, e)), made_pool, tilert_pool_destroy));
  QUIET(tilert_pool_destroy, 1, tilert_pool_destroy(NULL));
  ROW(tilert_pool_info, "0aa0", tilert_pool_info(P(1, pool), P(2, &info), P(3, e)));
  ROW(tilert_pool_trim, "0a0", tilert_pool_trim(P(1, pool), 0, P(2, e)));
  ROW(tilert_buffer_create_in, "0a0a0",
      FREED(tilert_buffer_create_in(P(1, stream), P(2, pool), 4, P(3, &made_buffer), P(4, e)), made_buffer, tilert_buffer_destroy));
  ROW(tilert_buffer_destroy_in, "0aa0", (tilert_buffer_destroy(made_buffer), tilert_buffer_create_in(stream, pool, 4, &made_buffer, NULL),
                                         last = tilert_buffer_destroy_in(P(1, made_buffer), P(2, stream), P(3, e)),
                                         made_buffer = last ? made_buffer : NULL, last));
  tilert_buffer_destroy(made_buffer);
}

static void
test_graphs(void)
{
  TilertNodeInfo info;
  TilertNode node, after = 0;
  const TilertRows rows = {.buffer = x}, from_host = {.host = text};
  ROW(tilert_graph_create, "0aa0", FREED(tilert_graph_create(P(1, dev), P(2, &made_graph), P(3, e)), made_graph, tilert_graph_destroy));
  QUIET(tilert_graph_destroy, 1, tilert_graph_destroy(NULL));
  ANSWER(tilert_graph_count, "10", tilert_graph_count(P(1, graph)));
  ROW(tilert_graph_node, "0aa0", tilert_graph_node(P(1, graph), 0, P(2, &info), P(3, e)));
  ROW(tilert_graph_add_launch, "0aaa00", tilert_graph_add_launch(P(1, graph), P(2, launch), P(3, &after), 1, P(4, &node), P(5, e)));
  ROW(tilert_graph_add_copy, "0aaaa00",
      tilert_graph_add_copy(P(1, graph), P(2, &rows), P(3, &from_host), 4, 1, P(4, &after), 1, P(5, &node), P(6, e)));
  ROW(tilert_graph_add_fill, "0aaa00", tilert_graph_add_fill(P(1, graph), P(2, x), 0, 4, 0, 1, P(3, &after), 1, P(4, &node), P(5, e)));
  ROW(tilert_graph_add_host, "0aa0a00", tilert_graph_add_host(P(1, graph), P(2, call_nothing), P(3, text), P(4, &after), 1, P(5, &node), P(6, e)));
  ROW(tilert_graph_add_empty, "0aa00", tilert_graph_add_empty(P(1, graph), P(2, &after), 1, P(3, &node), P(4, e)));
  CHECK_FAILS(tilert_graph_add_empty(graph, NULL, SIZE_MAX, NULL, e), TILERT_E_ARGUMENT, "after is NULL");
  ROW(tilert_graph_instantiate, "0aa0",
      FREED(tilert_graph_instantiate(P(1, graph), P(2, &made_exec), P(3, e)), made_exec, tilert_graph_exec_destroy));
  QUIET(tilert_graph_exec_destroy, 1, tilert_graph_exec_destroy(NULL));
  ROW(tilert_graph_launch, "0a00", tilert_graph_launch(P(1, exec), P(2, stream), P(3, e)));
  ROW(tilert_graph_set_arg, "0aa0", tilert_graph_set_arg(P(1, exec), 0, 3, P(2, &axpy_args[3]), P(3, e)));
  ROW(tilert_graph_set_grid, "0aa0", tilert_graph_set_grid(P(1, exec), 0, P(2, one), P(3, e)));
  ROW(tilert_graph_set_launch, "0aa0", tilert_graph_set_launch(P(1, exec), 0, P(2, launch), P(3, e)));
  CHECK_FAILS(tilert_graph_set_arg(exec, 0, SIZE_MAX, axpy_args, e), TILERT_E_ARGUMENT, "there is none at");
}

static void
test_modules(void)
{
  static TilertManifest m[2], bad;
  TilertKernelInfo info;
  TilertKernel *k;
  static const uint64_t extents[] = {64};
  static const uint32_t box[] = {64}, steps[] = {1};
  static _Alignas(64) char map[128];
  TilertTensor tensor = {.type = 6, .rank = 1, .extents = extents, .box = box, .steps = steps};
  static const uint64_t volume[] = {64, 8, 8}, apart[] = {128, 1024};
  static const uint32_t each[] = {1, 1, 1};
  static const int32_t corner[] = {0};
  TilertTensor images = {.type = 6, .rank = 3, .extents = volume, .strides = apart, .steps = each};
  TilertPixels pixels = {corner, corner, 64, 8};
  uint32_t blocks, firsts[TILERT_MAX_PARAMS];
  size_t n, size = strlen(axpy_ptx);
  ROW(tilert_manifest_parse, "0aaa0", tilert_manifest_parse(P(1, axpy_ptx), size, P(2, m), 2, P(3, &n), P(4, e)));
  ROW(tilert_manifest_parse, "000", tilert_manifest_parse(P(1, axpy_ptx), 0, P(2, m), 0, &n, e));
  ROW(tilert_module_load, "0aaaa0", FREED(tilert_module_load(P(1, dev), P(2, axpy_ptx), size, P(3, m), 2, P(4, &made_module), P(5, e)),
                                         made_module, tilert_module_destroy));
  ROW(tilert_module_load, "00", FREED(tilert_module_load(dev, axpy_ptx, size, P(1, m), 0, &made_module, e), made_module,
                                      tilert_module_destroy));
  ANSWER(tilert_manifest_text, "101", tilert_manifest_text(P(1, m), P(2, text), 0));
  ANSWER(tilert_param_size, "10", tilert_param_size(P(1, &m->params[0])));
  ANSWER(tilert_manifest_args, "101", tilert_manifest_args(P(1, m), P(2, firsts)));
  ROW(tilert_manifest_derive, "0aaa0", tilert_manifest_derive(P(1, axpy_ptx), size, P(2, m), 2, P(3, &n), P(4, e)));
  ROW(tilert_manifest_derive, "00", tilert_manifest_derive(axpy_ptx, size, P(1, m), 0, &n, e));
  CHECK_FAILS(tilert_manifest_derive(NULL, 0, NULL, 0, &n, e), TILERT_E_MODULE, "PTX line 1: PTX starts with .version");
  CHECK_OK(tilert_manifest_parse(axpy_ptx, size, m, 2, &n, e));
  CHECK_FAILS(tilert_module_load(dev, axpy_ptx, size, m, SIZE_MAX / 8, &made_module, e), TILERT_E_ARGUMENT, "kernels");
  bad = m[0];
  memset(bad.kernel, 'k', sizeof bad.kernel);
  CHECK_FAILS(tilert_module_load(dev, axpy_ptx, size, &bad, 1, &made_module, e), TILERT_E_ARGUMENT, "malformed");
  bad = m[0];
  memset(bad.params[1].name, 'p', sizeof bad.params[1].name);
  CHECK_FAILS(tilert_module_load(dev, axpy_ptx, size, &bad, 1, &made_module, e), TILERT_E_ARGUMENT, "parameter 1 is malformed");
  bad = m[0];
  bad.nparams = UINT32_MAX;
  CHECK_FAILS(tilert_module_load(dev, axpy_ptx, size, &bad, 1, &made_module, e), TILERT_E_ARGUMENT, "malformed");
  bad = m[0];
  bad.params[0].kind = (TilertParamKind)77;
  CHECK_FAILS(tilert_module_load(dev, axpy_ptx, size, &bad, 1, &made_module, e), TILERT_E_ARGUMENT, "malformed");
  CHECK_FAILS(tilert_module_load(dev, "", 0, NULL, 0, &made_module, e), TILERT_E_MODULE, "no //@tilec line");
  QUIET(tilert_module_destroy, 1, tilert_module_destroy(NULL));
  ANSWER(tilert_module_kernel_count, "10", tilert_module_kernel_count(P(1, module)));
  ROW(tilert_module_kernel, "0aaa0", tilert_module_kernel(P(1, module), P(2, "axpy"), P(3, &k), P(4, e)));
  ANSWER(tilert_kernel_manifest, "10", tilert_kernel_manifest(P(1, kernel)));
  TilertArgInfo about;
  ANSWER(tilert_module_kernel_at, "10", tilert_module_kernel_at(P(1, module), 0));
  ANSWER(tilert_kernel_arg_count, "10", tilert_kernel_arg_count(P(1, kernel)));
  ROW(tilert_kernel_arg, "0aa0", tilert_kernel_arg(P(1, kernel), 0, P(2, &about), P(3, e)));
  ANSWER(tilert_kernel_signature, "101", tilert_kernel_signature(P(1, kernel), P(2, text), sizeof text));
  ANSWER(tilert_kernel_fits, "111", tilert_kernel_fits(P(1, kernel), P(2, axpy_args), 4));
  ROW(tilert_kernel_info, "0aa0", tilert_kernel_info(P(1, kernel), P(2, &info), P(3, e)));
  ROW(tilert_tensor_map, "0aaa0", tilert_tensor_map(P(1, dev), P(2, &tensor), P(3, map), P(4, e)));
  ROW(tilert_tensor_map_im2col, "0aaaa0", tilert_tensor_map_im2col(P(1, dev), P(2, &images), P(3, &pixels), P(4, map), P(5, e)));
  ROW(tilert_kernel_occupancy, "0aa0", tilert_kernel_occupancy(P(1, kernel), P(2, &blocks), P(3, e)));
}

static void
test_launches(void)
{
  TilertBench b;
  uint32_t has[3];
  TilertArg odd = {.kind = 1000}, none = {.kind = TILERT_ARG_BUFFER};
  ROW(tilert_launch, "00a0a0", tilert_launch(P(1, stream), P(2, kernel), P(3, one), P(4, axpy_args), 4, P(5, e)));
  CHECK_FAILS(tilert_launch(NULL, kernel, one, axpy_args, SIZE_MAX, e), TILERT_E_ARGUMENT, "takes 4 arguments");
  CHECK_FAILS(tilert_launch(NULL, kernel, one, NULL, 0, e), TILERT_E_ARGUMENT, "takes 4 arguments");
  ROW(tilert_launch_create, "0a0aa0", FREED(tilert_launch_create(P(1, kernel), P(2, one), P(3, axpy_args), 4, P(4, &made_launch), P(5, e)),
                                           made_launch, tilert_launch_destroy));
  QUIET(tilert_launch_destroy, 1, tilert_launch_destroy(NULL));
  ROW(tilert_kernel_grid, "0aaa0", tilert_kernel_grid(P(1, kernel), P(2, axpy_args), 4, P(3, has), P(4, e)));
  CHECK_FAILS(tilert_kernel_grid(kernel, axpy_args, 3, has, e), TILERT_E_ARGUMENT, "takes 4 arguments");
  ROW(tilert_launch_grid, "0aa0", tilert_launch_grid(P(1, launch), P(2, has), P(3, e)));
  ROW(tilert_launch_set_grid, "0aa0", tilert_launch_set_grid(P(1, launch), P(2, one), P(3, e)));
  ROW(tilert_launch_set_arg, "0aa0", tilert_launch_set_arg(P(1, launch), 0, P(2, axpy_args), P(3, e)));
  CHECK_FAILS(tilert_launch_set_arg(launch, SIZE_MAX, axpy_args, e), TILERT_E_ARGUMENT, "there is none at");
  CHECK_FAILS(tilert_launch_set_arg(launch, 1, &odd, e), TILERT_E_ARGUMENT, "unknown kind");
  CHECK_FAILS(tilert_launch_set_arg(launch, 1, &none, e), TILERT_E_ARGUMENT, "the buffer is NULL");
  ANSWER(tilert_launch_kernel, "10", tilert_launch_kernel(P(1, launch)));
  ROW(tilert_launch_set_shape, "0aa0", tilert_launch_set_shape(P(1, launch), P(2, warp), 0, P(3, e)));
  ROW(tilert_launch_set_cluster, "0aa0", tilert_launch_set_cluster(P(1, launch), P(2, one), P(3, e)));
  ROW(tilert_launch_set_pdl, "0a0", tilert_launch_set_pdl(P(1, launch), TILERT_PDL_AUTO, P(2, e)));
  ROW(tilert_launch_set_priority, "0a0", tilert_launch_set_priority(P(1, launch), 0, P(2, e)));
  const TilertWindow window = {.buffer = x, .bytes = 4};
  ROW(tilert_launch_set_window, "0a00", tilert_launch_set_window(P(1, launch), P(2, &window), P(3, e)));
  CHECK_OK(tilert_launch_set_window(launch, NULL, e));
  ROW(tilert_launch_shaped, "00a0aa0",
      tilert_launch_shaped(P(1, stream), P(2, kernel), P(3, one), P(4, warp), 0, P(5, axpy_args), 4, P(6, e)));
  CHECK_FAILS(tilert_launch_shaped(NULL, kernel, one, warp, 0, NULL, 0, e), TILERT_E_ARGUMENT, "takes 4 arguments");
  CHECK_FAILS(tilert_launch_shaped(NULL, kernel, one, warp, 0, axpy_args, SIZE_MAX, e), TILERT_E_ARGUMENT, "takes 4 arguments");
  CHECK_FAILS(tilert_launch_set_shape(launch, warp, UINT32_MAX, e), TILERT_E_UNAVAILABLE, "4294967295 bytes of shared memory");
  ROW(tilert_launch_packed, "0a00", tilert_launch_packed(P(1, launch), P(2, stream), P(3, e)));
  ROW(tilert_bench, "0a00a0a0",
      tilert_bench(P(1, dev), P(2, stream), P(3, run_nothing), P(4, run_nothing), P(5, text), 0, 0, P(6, &b), P(7, e)));
  ROW(tilert_bench_launch, "0a0a0", tilert_bench_launch(P(1, launch), P(2, stream), 0, 0, P(3, &b), P(4, e)));
  CHECK_OK(tilert_bench_launch(launch, NULL, (double)NAN, (double)NAN, &b, e));
  CHECK_OK(tilert_bench_launch(launch, NULL, -1e300, -1e300, &b, e));
}

/* After a launch that failed there is something to tell. */
static void
test_fault(void)
{
  TilertKernel *wild;
  TilertArg args[2] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_INT, .u.i = 1 << 20}};
  CHECK_OK(tilert_module_kernel(module, "wild", &wild, e));
  CHECK_FAILS(tilert_launch(NULL, wild, one, args, 2, e), TILERT_E_FAULT, "wild.tile:7");
  ANSWER(tilert_device_fault, "101", tilert_device_fault(P(1, dev), P(2, text), sizeof text));
}

/* The status of a compilation, -1 if it gives no reason; its result is freed. */
static int
status_of(TilecResult *r)
{
  int status = r ? r->status : -1, said = r && r->diagnostics && (!status || r->diagnostics[0]);
  tilec_result_free(r);
  return said ? status : -1;
}

typedef TilecResult *Compile(const char *name, const char *text, size_t len, const TilecOptions *o);

/* Options of a newer header, which say something more or do not, and of an older one. */
static void
test_sizes(Compile *compile)
{
  struct { TilecOptions o; uint64_t more; } given = {.more = 1};
  tilec_options_default(&given.o);
  CHECK(given.o.size == sizeof given.o);
  given.o.size = sizeof given;
  TilecResult *r = compile("k.tile", source, strlen(source), &given.o);
  CHECK(r && strstr(r->diagnostics, "TilecOptions has ") && strstr(r->diagnostics, "it is older than the header"));
  CHECK(status_of(r) == TILEC_MISUSE);
  given.more = 0;
  CHECK(status_of(compile("k.tile", source, strlen(source), &given.o)) == TILEC_OK);
  given.o.emit = (TilecEmit)99;
  CHECK(status_of(compile("k.tile", source, strlen(source), &given.o)) == TILEC_MISUSE);
  given.o.size = offsetof(TilecOptions, emit);
  CHECK(status_of(compile("k.tile", source, strlen(source), &given.o)) == TILEC_OK);
}

/* A size that is none: nothing is looked at behind what is there. */
static void
test_no_size(Compile *compile)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  TilecOptions *o = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(o != MAP_FAILED && !mprotect((char *)o + page, page, PROT_NONE));
  tilec_options_default(o);
  o->size = SIZE_MAX;
  CHECK(status_of(compile("k.tile", source, strlen(source), o)) == TILEC_MISUSE);
  munmap(o, 2 * page);
}

static void
test_function(const char *name, Compile *compile)
{
  static const char *const no_folders[] = {NULL};
  static const TilecDefine no_value = {"B", NULL}, no_name = {NULL, "1"};
  static const TilecFact no_kind = {"n", (TilecFactKind)77, 0, NULL}, of_nothing = {NULL, TILEC_FACT_EQUAL, 0, "n"};
  static const TilecFact alone = {"n", TILEC_FACT_SAME, 0, NULL};
  TilecOptions o, plain;
  tilec_options_default(&plain);
  for (hole = 0; hole < 4; hole++)
    CHECK(status_of(compile(P(1, "k.tile"), P(2, source), strlen(source), P(3, &plain))) == (hole == 2 ? TILEC_MISUSE : TILEC_OK));
  CHECK(status_of(compile("k.tile", NULL, 0, &plain)) >= 0);
  CHECK(status_of(compile("k.tile", source, SIZE_MAX, &plain)) == TILEC_FAILED);
#define REFUSED(...) (o = plain, __VA_ARGS__, status_of(compile("k.tile", source, strlen(source), &o)) == TILEC_MISUSE)
  CHECK(REFUSED(o.ndefines = 1) && REFUSED(o.nfacts = 1) && REFUSED(o.nimport_path = 1));
  CHECK(REFUSED(o.defines = &no_value, o.ndefines = SIZE_MAX) && REFUSED(o.emit = (TilecEmit)99) && REFUSED(o.emit = (TilecEmit)-1));
  CHECK(REFUSED(o.defines = &no_value, o.ndefines = 1) && REFUSED(o.defines = &no_name, o.ndefines = 1));
  CHECK(REFUSED(o.facts = &no_kind, o.nfacts = 1) && REFUSED(o.facts = &of_nothing, o.nfacts = 1));
  CHECK(REFUSED(o.facts = &alone, o.nfacts = 1));
  CHECK(REFUSED(o.import_path = no_folders, o.nimport_path = 1) && REFUSED(o.kernel = ""));
  CHECK(REFUSED(o.size = 0) && REFUSED(o.size = SIZE_MAX));
  test_sizes(compile);
  test_no_size(compile);
  note(name);
}

static void
test_compiler(void)
{
  TilecOptions o;
  static const char *const words[] = {"emit", NULL, "target"};
  char *made = NULL;
  QUIET(tilec_options_default, 1, tilec_options_default(P(1, &o)));
  test_function("tilec_compile", tilec_compile);
  test_function("tilec_describe", tilec_describe);
  QUIET(tilec_result_free, 0, tilec_result_free(NULL));
  ANSWER(tilec_print_table, "10", (tilec_free(made), made = tilec_print_table(P(1, "ops"))));
  ANSWER(tilec_explain, "10", (tilec_free(made), made = tilec_explain(P(1, "E0211"))));
  CHECK(!tilec_explain("") && !tilec_print_table(""));
  QUIET(tilec_free, 1, tilec_free(NULL));
  ANSWER(tilec_suggest, "100", tilec_suggest(P(1, "emti"), P(2, words), 3));
  CHECK(status_of(tilec_print_layout("mma<128x64; 4x2>", 32)) == TILEC_OK && status_of(tilec_print_layout(NULL, 32)) == TILEC_MISUSE);
  CHECK(status_of(tilec_print_layout("mma<128x64; 4x2>", 0)) == TILEC_MISUSE && status_of(tilec_print_layout("", 32)) == TILEC_FAILED);
  CHECK(status_of(tilec_print_layout("mma<128x64; 4x2>", UINT32_MAX)) == TILEC_MISUSE);
  note("tilec_print_layout");
  ANSWER(tilec_version, "1", tilec_version());
}

/* Also through pointers that lie in options and lists. */
static void
test_programs(void)
{
  static const char *const no_folders[] = {NULL}, *const no_names[] = {"x", NULL};
  TilejitOptions o = {.size = sizeof o};
  TilecDefine define = {"B", "32"}, bad = {"B", NULL};
  TilejitKernel *k;
  char long_name[400];
  uint32_t shape[3] = {7, 7, 7};
  size_t len = strlen(source);
  ROW(tilejit_program_create, "0a0a0a0", FREED(tilejit_program_create(P(1, dev), P(2, "k.tile"), P(3, source), len, P(4, &o),
                                         P(5, &made_program), P(6, e)), made_program, tilejit_program_destroy));
  CHECK_FAILS(tilejit_program_create(dev, "k.tile", source, SIZE_MAX, NULL, &made_program, e), TILERT_E_COMPILE, "16 MiB");
  ROW(tilejit_program_open, "0aa0a0", FREED(tilejit_program_open(P(1, dev), P(2, path), P(3, &o), P(4, &made_program), P(5, e)),
                                           made_program, tilejit_program_destroy));
  o.nimport_path = 1;
  CHECK_FAILS(tilejit_program_create(dev, "k.tile", source, len, &o, &made_program, e), TILERT_E_ARGUMENT, "import_path is NULL");
  o.import_path = no_folders;
  CHECK_FAILS(tilejit_program_create(dev, "k.tile", source, len, &o, &made_program, e), TILERT_E_ARGUMENT, "a folder in import_path");
  o.nimport_path = SIZE_MAX;
  CHECK_FAILS(tilejit_program_create(dev, "k.tile", source, len, &o, &made_program, e), TILERT_E_ARGUMENT, "too large");
  QUIET(tilejit_program_destroy, 1, tilejit_program_destroy(NULL));
  QUIET(tilejit_program_diagnostics, 2, tilejit_program_diagnostics(P(1, program), P(2, text), sizeof text));
  QUIET(tilejit_program_cache_trouble, 2, tilejit_program_cache_trouble(P(1, program), P(2, text), sizeof text));
  ROW(tilejit_kernel, "0a0aa0", tilejit_kernel(P(1, program), P(2, "k"), P(3, &define), 1, P(4, &k), P(5, e)));
  CHECK_FAILS(tilejit_kernel(program, "k", &bad, 1, &k, e), TILERT_E_ARGUMENT, "whose name or value is NULL");
  CHECK_FAILS(tilejit_kernel(program, "k", &define, SIZE_MAX, &k, e), TILERT_E_ARGUMENT, "too many defines");
  memset(long_name, 'k', sizeof long_name);
  long_name[sizeof long_name - 1] = 0;
  CHECK_FAILS(tilejit_kernel(program, long_name, NULL, 0, &k, e), TILERT_E_ARGUMENT, "too long");
  CHECK_FAILS(tilejit_kernel(program, "", NULL, 0, &k, e), TILERT_E_ARGUMENT, "no kernel ''");
  ANSWER(tilejit_kernel_name, "10", tilejit_kernel_name(P(1, jit_kernel)));
  ANSWER(tilejit_kernel_param_count, "10", tilejit_kernel_param_count(P(1, jit_kernel)));
  ANSWER(tilejit_kernel_param, "10", tilejit_kernel_param(P(1, jit_kernel), 0));
  CHECK(!tilejit_kernel_param(jit_kernel, SIZE_MAX));
  ANSWER(tilejit_kernel_forms, "10", tilejit_kernel_forms(P(1, jit_kernel)));
  ROW(tilejit_launch, "0a0aa0", tilejit_launch(P(1, jit_kernel), P(2, stream), P(3, one), P(4, k_args), 2, P(5, e)));
  CHECK_FAILS(tilejit_launch(jit_kernel, NULL, one, k_args, SIZE_MAX, e), TILERT_E_ARGUMENT, "takes 2 arguments");
  ANSWER(tilejit_kernel_shape, "000", tilejit_kernel_shape(P(1, jit_kernel), P(2, shape)));
  CHECK(shape[0] == 0 && shape[1] == 0 && shape[2] == 0);
  ROW(tilejit_launch_named, "0a0aaa0",
      tilejit_launch_named(P(1, jit_kernel), P(2, stream), P(3, one), P(4, names), P(5, k_args), 2, P(6, e)));
  CHECK_FAILS(tilejit_launch_named(jit_kernel, NULL, one, no_names, k_args, 2, e), TILERT_E_ARGUMENT, "NULL is the name");
  CHECK_FAILS(tilejit_launch_named(jit_kernel, NULL, one, names, k_args, SIZE_MAX, e), TILERT_E_ARGUMENT, "takes 2 arguments");
}

static void
test_calls(void)
{
  TilejitInfo info;
  ROW(tilejit_call_create, "0aa0aa0", FREED(tilejit_call_create(P(1, jit_kernel), P(2, one), P(3, names), P(4, k_args), 2,
                                      P(5, &made_call), P(6, e)), made_call, tilejit_call_destroy));
  QUIET(tilejit_call_destroy, 1, tilejit_call_destroy(NULL));
  ROW(tilejit_call_set_grid, "0aa0", tilejit_call_set_grid(P(1, call), P(2, one), P(3, e)));
  ROW(tilejit_call_launch, "0a00", tilejit_call_launch(P(1, call), P(2, stream), P(3, e)));
  ANSWER(tilejit_call_packed, "10", tilejit_call_packed(P(1, call)));
  ROW(tilejit_call_info, "0aa0", tilejit_call_info(P(1, call), P(2, &info), P(3, e)));
  ANSWER(tilejit_call_ptx, "10", tilejit_call_ptx(P(1, call)));
}

static void
test_tunings(void)
{
  TilecDefine define = {"B", "32"};
  TilejitTuneOptions o = {.size = sizeof o};
  ROW(tilejit_tune, "0a0a000a0a0",
      FREED(tilejit_tune(P(1, program), P(2, "k"), P(3, &define), 1, P(4, stream), P(5, grid_of), P(6, text), P(7, k_args), 2, P(8, &o),
                         P(9, &made_tuning), P(10, e)), made_tuning, tilejit_tuning_free));
  CHECK_FAILS(tilejit_tune(program, "k", NULL, 0, NULL, grid_of, NULL, k_args, SIZE_MAX, NULL, &made_tuning, e), TILERT_E_ARGUMENT,
              "takes 2 arguments");
  QUIET(tilejit_tuning_free, 1, tilejit_tuning_free(NULL));
  ANSWER(tilejit_tuning_kernel, "10", tilejit_tuning_kernel(P(1, tuning)));
  ANSWER(tilejit_tuning_count, "10", tilejit_tuning_count(P(1, tuning)));
  ANSWER(tilejit_tuning_trial, "10", tilejit_tuning_trial(P(1, tuning), 0));
  CHECK(!tilejit_tuning_trial(tuning, SIZE_MAX));
  QUIET(tilejit_tuning_chosen, 1, tilejit_tuning_chosen(P(1, tuning)));
  QUIET(tilejit_tuning_remembered, 1, tilejit_tuning_remembered(P(1, tuning)));
  ANSWER(tilejit_tuning_choice, "10", tilejit_tuning_choice(P(1, tuning)));
}

/* Below the functions that tilec --emit=c writes. */
static void
test_ahead(void)
{
  static const unsigned char packed[] = {3, 'a', 'b', 'c', 5, 3, 0, 0};
  static void *state;
  unsigned char bytes[8];
  const TilertAotCode code = {packed, sizeof packed, sizeof bytes};
  const TilertAotForm form = {"sm_100a", "", code, {NULL, 0, 0}, NULL, 0, 0};
  const TilertAotKernel k = {TILERT_AOT_VERSION, 0, 1, 0, "k", NULL, 0, &form, &state};
  ROW(tilert_aot_launch, "uaauuu", tilert_aot_launch(P(1, &k), P(2, stream), P(3, one), P(4, axpy_args), P(5, e)));
  ROW(tilert_aot_no_grid, "aaa", tilert_aot_no_grid(P(1, &k), P(2, e)));
  ROW(tilert_aot_load, "uaau", tilert_aot_load(P(1, &k), P(2, dev), P(3, e)));
  QUIET(tilert_aot_unload, 1, tilert_aot_unload(P(1, &k)));
  ROW(tilert_aot_unpack, "0aa0", tilert_aot_unpack(P(1, &code), P(2, bytes), P(3, e)));
}

/* ---- is every function there? ---- */

static int
check_header(const char *name)
{
  static char all[1 << 16];
  char file[400], word[64];
  snprintf(file, sizeof file, "%s/%s", SOURCE_DIR, name);
  FILE *f = fopen(file, "rb");
  CHECK(f);
  all[fread(all, 1, sizeof all - 1, f)] = 0;
  fclose(f);
  int functions = 0;
  for (char *s = all; (s = strstr(s, "_API ")) != NULL;) {
    char *open_at = strchr(s, '('), *from_at = open_at;
    if (!strncmp(s, "_API __attribute__", 18) || !open_at) {
      s += 5;
      continue;
    }
    while (from_at[-1] == '_' || (from_at[-1] >= 'a' && from_at[-1] <= 'z') || (from_at[-1] >= '0' && from_at[-1] <= '9'))
      from_at--;
    snprintf(word, sizeof word, "%.*s", (int)(open_at - from_at), from_at);
    int found = 0;
    for (int i = 0; i < nseen; i++)
      found |= !strcmp(seen[i], word);
    if (!found)
      fprintf(stderr, "%s: %s is not in the table\n", name, word);
    CHECK(found);
    functions++;
    s = open_at;
  }
  return functions;
}

static void
check_headers(void)
{
  char list[] = INSTALLED_HEADERS, *rest = NULL;
  int functions = 0;
  for (const char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
    functions += check_header(name);
  CHECK(functions > 150);
}

int
main(void)
{
  setenv("TILEC_CACHE", "0", 1);
  open_all();
  test_devices();
  test_streams();
  test_buffers();
  test_more_memory();
  test_graphs();
  test_modules();
  test_launches();
  test_fault();
  test_compiler();
  test_programs();
  test_calls();
  test_tunings();
  test_ahead();
  check_headers();
  close_all();
  return 0;
}
