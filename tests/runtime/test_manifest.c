/* The //@tilec lines: what is read, and what is refused. */
#include "check.h"
#include "kernels.h"
#include "tilert.h"

static TilertError err;

static int
parse(const char *text, TilertManifest *out, size_t max, size_t *n)
{
  return tilert_manifest_parse(text, strlen(text), out, max, n, &err);
}

static void
test_two_kernels(void)
{
  static TilertManifest m[2];
  size_t n;
  CHECK_OK(parse(axpy_ptx, NULL, 0, &n));
  CHECK(n == 2);
  CHECK_OK(parse(axpy_ptx, m, 2, &n));
  CHECK(!strcmp(m[0].kernel, "axpy") && m[0].warps == 1 && m[0].nparams == 4 && !strcmp(m[0].target, "sm_80"));
  CHECK(m[0].params[0].kind == TILERT_PARAM_SCALAR && m[0].params[0].size == 4);
  CHECK(m[0].params[2].kind == TILERT_PARAM_POINTER && m[0].params[2].divisible == 16 && m[0].params[2].size == 8);
  CHECK(!strcmp(m[1].kernel, "wild") && m[1].shared == 128 && m[1].params[1].divisible == 4);
}

static void
test_odd_but_good(void)
{
  static TilertManifest m;
  size_t n;
  CHECK_OK(parse("//@tilec  warps=4 kernel=k future=1 params=\r\n", &m, 1, &n));
  CHECK(n == 1 && m.nparams == 0 && m.warps == 4);
  CHECK_OK(parse("//@tilec kernel=k warps=32 params=t:tensormap:f16,b:scalar:i1", &m, 1, &n));
  CHECK(m.params[0].size == 128 && m.params[1].size == 1);
  CHECK_OK(parse("//@tilec kernel=k warps=1 params=a:ptr:f32:nonnull,b:ptr:f32:16:null,c:ptr:f32:8", &m, 1, &n));
  CHECK(m.params[0].null == TILERT_NULL_NEVER && m.params[0].divisible == 1 && m.params[1].null == TILERT_NULL_ALWAYS);
  CHECK(m.params[1].divisible == 16 && m.params[2].null == TILERT_NULL_ANY && m.params[2].divisible == 8);
  CHECK_OK(parse("//@tilec kernel=k warps=1 params=a:ptr:f32:16,n:scalar:i32,b:ptr:f32,c:ptr:f32 needs=0,3", &m, 1, &n));
  CHECK(m.params[0].null == TILERT_NULL_NEEDED && m.params[2].null == TILERT_NULL_ANY && m.params[3].null == TILERT_NULL_NEEDED);
  CHECK_OK(parse("// nothing here\n.version 8.0\n", &m, 1, &n));
  CHECK(n == 0);
  CHECK_OK(parse("", &m, 1, &n));
}

static void
test_bad(void)
{
  static TilertManifest m;
  static char many[4096] = "//@tilec kernel=k warps=1 params=";
  size_t n;
  CHECK_FAILS(parse("\n//@tilec warps=1", &m, 1, &n), TILERT_E_MODULE, "line 2 of the PTX: no kernel=");
  static const char nul[] = "//@tilec kernel=k warps=1 params=a\0b:ptr:f32";
  CHECK_FAILS(tilert_manifest_parse(nul, sizeof nul - 1, &m, 1, &n, &err), TILERT_E_MODULE, "bad parameter name");
  CHECK_FAILS(parse("//@tilec kernel=k", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=33", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=99999999999", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=4294967297", &m, 1, &n), TILERT_E_MODULE, "warps");    /* 1 and 2^32 */
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 shared=4294967296", &m, 1, &n), TILERT_E_MODULE, "shared");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:ptr:f32:4294967312", &m, 1, &n), TILERT_E_MODULE, "alignment");
  static const char *const needs[] = {"1", "2", "3", "-1", "x", "0,0"};      /* a scalar, known not to be null, none, no number, twice */
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    char line[128];
    snprintf(line, sizeof line, "//@tilec kernel=k warps=1 params=x:ptr:f32,n:scalar:i32,y:ptr:f32:nonnull needs=%s", needs[i]);
    CHECK_FAILS(parse(line, &m, 1, &n), TILERT_E_MODULE, "bad number of a pointer");
  }
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:ptr", &m, 1, &n), TILERT_E_MODULE, "type");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:blob:f32", &m, 1, &n), TILERT_E_MODULE, "kind");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:scalar:f33", &m, 1, &n), TILERT_E_MODULE, "type");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:ptr:f32:0", &m, 1, &n), TILERT_E_MODULE, "alignment");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:ptr:f32:16:nul", &m, 1, &n), TILERT_E_MODULE, "alignment");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:scalar:f32:null", &m, 1, &n), TILERT_E_MODULE, "alignment");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=,", &m, 1, &n), TILERT_E_MODULE, "name");
  for (int i = 0; i < 65; i++)
    strcat(many, "x:ptr:f32,");
  CHECK_FAILS(parse(many, &m, 1, &n), TILERT_E_MODULE, "too many");
}

/* Clusters that kernels were compiled for. */
static void
test_cluster(void)
{
  static TilertManifest m;
  size_t n;
  char line[256];
  CHECK_OK(parse("//@tilec kernel=k warps=1 cluster=2x1x4 params=", &m, 1, &n));
  CHECK(m.cluster[0] == 2 && m.cluster[1] == 1 && m.cluster[2] == 4);
  CHECK(tilert_manifest_text(&m, line, sizeof line) && !strcmp(line, "//@tilec kernel=k warps=1 shared=0 cluster=2x1x4 params=\n"));
  CHECK_OK(parse("//@tilec kernel=k warps=1 params=", &m, 1, &n));
  CHECK(!m.cluster[0] && tilert_manifest_text(&m, line, sizeof line) && !strstr(line, "cluster"));
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 cluster=2x1 params=", &m, 1, &n), TILERT_E_MODULE, "bad cluster");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 cluster=2x1x1x1 params=", &m, 1, &n), TILERT_E_MODULE, "bad cluster");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 cluster=8x3x1 params=", &m, 1, &n), TILERT_E_MODULE, "bad cluster");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 cluster=4294967295x4294967295x1 params=", &m, 1, &n), TILERT_E_MODULE, "bad cluster");
}

/* The grid that a kernel says itself. */
static void
test_grid(void)
{
  static TilertManifest m;
  static char many[1024] = "//@tilec kernel=k warps=1 grid=$0";
  size_t n;
  char line[256];
  CHECK_OK(parse("//@tilec kernel=k warps=1 grid=$0,64,cdiv;$1.1,4,min params=n:scalar:i32,t:tensor:f32:rank=2:base", &m, 1, &n));
  CHECK(!strcmp(m.grid, "$0,64,cdiv;$1.1,4,min"));
  CHECK(tilert_manifest_text(&m, line, sizeof line) && strstr(line, " grid=$0,64,cdiv;$1.1,4,min params="));
  CHECK_OK(parse("//@tilec kernel=k warps=1 grid=-1000000;$0,-5,max params=n:scalar:i32", &m, 1, &n));   /* numbers are no arguments */
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid= params=", &m, 1, &n), TILERT_E_MODULE, "bad grid");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=4, params=", &m, 1, &n), TILERT_E_MODULE, "an unknown term");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=4,5 params=", &m, 1, &n), TILERT_E_MODULE, "several values");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=4,+ params=", &m, 1, &n), TILERT_E_MODULE, "without operands");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=4;4;4;4 params=", &m, 1, &n), TILERT_E_MODULE, "more than three");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=4x params=", &m, 1, &n), TILERT_E_MODULE, "an unknown term");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$ params=", &m, 1, &n), TILERT_E_MODULE, "an unknown term");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$0.999 params=", &m, 1, &n), TILERT_E_MODULE, "an unknown term");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$1 params=n:scalar:i32", &m, 1, &n), TILERT_E_MODULE, "no integer or extent");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$0 params=n:scalar:f32", &m, 1, &n), TILERT_E_MODULE, "no integer or extent");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$0.0 params=n:scalar:i32", &m, 1, &n), TILERT_E_MODULE, "no integer or extent");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 grid=$0.2 params=t:tensor:f32:rank=2:base", &m, 1, &n), TILERT_E_MODULE, "no integer");
  for (int i = 0; i < 20; i++)
    strcat(many, ",$0");
  strcat(many, " params=n:scalar:i32");
  CHECK_FAILS(parse(many, &m, 1, &n), TILERT_E_MODULE, "too deep");
  strcpy(many, "//@tilec kernel=k warps=1 grid=$0");
  for (int i = 0; i < 80; i++)
    strcat(many, ",$0,+");
  CHECK_FAILS(parse(many, &m, 1, &n), TILERT_E_MODULE, "bad grid");
}

/* Pairs of pointers that are relied upon to be different. */
static void
test_apart(void)
{
  static TilertManifest m;
  size_t n;
  CHECK_OK(parse("//@tilec kernel=k apart=0:2,1:2,0:2 warps=1 params=x:ptr:f32,y:ptr:f32,z:ptr:i32,n:scalar:i32", &m, 1, &n));
  CHECK(m.napart == 2 && m.apart[0] == 4 && m.apart[1] == 4 && !m.apart[2]);
  CHECK_OK(parse("//@tilec kernel=k warps=1 params=x:ptr:f32,y:ptr:f32 apart=", &m, 1, &n));
  CHECK(!m.napart);
#define PAIR(pair) parse("//@tilec kernel=k warps=1 params=x:ptr:f32,y:ptr:f32,n:scalar:i32 apart=" pair, &m, 1, &n)
  CHECK_FAILS(PAIR("0:0"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("1:0"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("0:64"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("0:99999999999"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("0"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("x:y"), TILERT_E_MODULE, "bad pair");
  CHECK_FAILS(PAIR("0:2"), TILERT_E_MODULE, "no pointers");
  CHECK_FAILS(PAIR("0:3"), TILERT_E_MODULE, "no pointers");
}

/* One argument of four parts. */
#define PARTS "a:tensor:f16:rank=2:map=128x64:swizzle=128,a:tensor:f16:rank=2:base:16,a:tensor:f16:rank=2:extent=1:8," \
              "a:tensor:f16:rank=2:stride=0"
#define LINE(params) "//@tilec kernel=k warps=4 shared=64 target=sm_90a params=" params

static void
test_tensors(void)
{
  static TilertManifest m;
  uint32_t first[TILERT_MAX_PARAMS];
  size_t n;
  CHECK_OK(parse(LINE("x:ptr:f32," PARTS ",b:tensor:f32:rank=1:map=64,n:scalar:i32"), &m, 1, &n));
  const TilertParam *p = m.params + 1;
  CHECK(p[0].kind == TILERT_PARAM_TENSOR && p[0].part == TILERT_TENSOR_MAP && p[0].size == 128 && p[0].rank == 2 && p[0].swizzle == 128);
  CHECK(p[0].box[0] == 128 && p[0].box[1] == 64 && !p[0].box[2] && p[0].divisible == 1 && !strcmp(p[0].dtype, "f16"));
  CHECK(p[1].part == TILERT_TENSOR_BASE && p[1].size == 8 && p[1].divisible == 16);
  CHECK(p[2].part == TILERT_TENSOR_EXTENT && p[2].size == 4 && p[2].dim == 1 && p[2].divisible == 8);
  CHECK(p[3].part == TILERT_TENSOR_STRIDE && p[3].size == 8 && p[3].dim == 0 && p[3].divisible == 1);
  CHECK(p[4].box[0] == 64 && !p[4].swizzle);
  CHECK(tilert_manifest_args(&m, first) == 4 && first[0] == 0 && first[1] == 1 && first[2] == 5 && first[3] == 6);
  CHECK(tilert_manifest_args(NULL, NULL) == 0);
  CHECK_OK(parse(LINE(PARTS ",b:tensor:f32:rank=1:map=64") " apart=0:4,1:4", &m, 1, &n));
  CHECK(m.napart == 2);
  CHECK_OK(parse(LINE(PARTS ",b:tensor:f32:rank=1:map=64,n:scalar:i32") " apart=2:4", &m, 1, &n));   /* any part stands for the tensor */
  CHECK_OK(parse(LINE("x:tensor:f16:rank=4:map=1x1x1x64:swizzle=128:pixels=1024:lower=-128x0:upper=127x-3:steps=8x1"), &m, 1, &n));
  p = m.params;
  CHECK(p->pixels == 1024 && p->lower[0] == -128 && p->upper[0] == 127 && p->upper[1] == -3 && p->steps[0] == 8 && p->steps[1] == 1);
  CHECK(p->box[3] == 64 && p->box[2] == 1);
  CHECK_FAILS(parse(LINE(PARTS ",b:tensor:f32:rank=1:map=64,n:scalar:i32") " apart=2:5", &m, 1, &n), TILERT_E_MODULE, "no pointers");
}

static void
test_bad_tensors(void)
{
  static TilertManifest m;
  size_t n;
#define PART(part, says) CHECK_FAILS(parse(LINE("a:tensor:f16:" part), &m, 1, &n), TILERT_E_MODULE, says)
  PART("base", "bad rank");
  PART("rank=0:base", "bad rank");
  PART("rank=6:base", "bad rank");
  PART("rank=x:base", "bad part");
  PART("rank=2", "unknown part");
  PART("rank=2:heap", "alignment");
  PART("rank=2:base=1", "bad part");
  PART("rank=2:extent", "bad part");
  PART("rank=2:extent=2", "bad dimension");
  PART("rank=2:stride=-1", "bad part");
  PART("rank=2:stride=0:null", "alignment");
  PART("rank=2:map=64", "bad box");
  PART("rank=2:map=64x64x64", "bad box");
  PART("rank=2:map=0x64", "bad box");
  PART("rank=2:map=257x64", "bad box");
  PART("rank=2:map=64x", "bad box");
  PART("rank=2:map=64xx64", "bad part");
  PART("rank=5:map=1x1x1x1x1x8", "bad part");
  PART("rank=2:map=64x64:base", "bad part");
  PART("rank=2:base:extent=0", "bad part");
  PART("rank=2:base:swizzle=128", "bad swizzle");
  PART("rank=2:map=64x60", "multiple of 16 bytes");
  PART("rank=2:map=64x64:swizzle=64", "longer than its swizzle");
  PART("rank=2:map=64x64:swizzle=16", "bad swizzle");
  PART("rank=2:base:stored", "only maps store");
  PART("rank=2:base:tf32", "only maps of f32 that load round to tf32");
  PART("rank=2:map=8x64:stored:tf32", "only maps of f32 that load round to tf32");
  PART("rank=3:map=1x1x64:pixels=1025:lower=0:upper=0:steps=1", "bad pixels");
  PART("rank=3:map=1x1x64:pixels=x", "bad part");
  PART("rank=2:map=1x64:pixels=8:lower=0:upper=0:steps=1", "bad pixels");
  PART("rank=3:base:pixels=8:lower=0:upper=0:steps=1", "bad pixels");
  PART("rank=3:map=1x1x64:stored:pixels=8:lower=0:upper=0:steps=1", "bad pixels");
  PART("rank=3:map=1x2x64:pixels=8:lower=0:upper=0:steps=1", "channels alone");
  PART("rank=3:map=1x1x64:lower=1", "without pixels");
  PART("rank=3:map=1x1x64:steps=1", "without pixels");
  PART("rank=3:map=1x1x64:pixels=8:lower=40000:upper=0:steps=1", "bad part");
  PART("rank=3:map=1x1x64:pixels=8:lower=0x0x0x0:upper=0:steps=1", "bad part");
  PART("rank=3:map=1x1x64:pixels=8:lower=0:upper=0", "bad window");
  PART("rank=3:map=1x1x64:pixels=8:lower=0:upper=0:steps=9", "bad window");
  PART("rank=4:map=1x1x1x64:pixels=8:lower=0x-129:upper=0x0:steps=1x1", "bad window");
  PART("rank=4:map=1x1x1x64:pixels=8:lower=0x0:upper=128x0:steps=1x1", "bad window");
  PART("rank=5:map=1x1x1x1x64:pixels=8:lower=0x0x-17:upper=0x0x0:steps=1x1x1", "bad window");
  PART("rank=2:base,a:tensor:f32:rank=2:extent=0", "differ in rank or type");
  PART("rank=2:base,a:tensor:f16:rank=3:extent=0", "differ in rank or type");
  PART("rank=2:base,b:ptr:f16,a:tensor:f16:rank=2:extent=0", "are apart");
  CHECK_FAILS(parse(LINE("a:tensor:f33:rank=1:base"), &m, 1, &n), TILERT_E_MODULE, "unknown type");
}

/* Maps that a launch makes: no arguments, behind all that are. */
#define ARGS "p:ptr:f16:16,m:scalar:i32:16:nonneg,s:scalar:i64,f:scalar:f32"
#define VIEW "p:view:f16:rank=3:map=1x8x64:swizzle=128:of=0:extents=2147483647x$1x64:strides=64*$1*$2x-8"

static void
test_views(void)
{
  static TilertManifest m;
  uint32_t first[TILERT_MAX_PARAMS];
  size_t n;
  CHECK_OK(parse(LINE(ARGS "," VIEW "," VIEW), &m, 1, &n));
  const TilertParam *p = m.params + 4;
  CHECK(m.nparams == 6 && m.params[1].nonneg && !m.params[2].nonneg && tilert_manifest_args(&m, first) == 4 && first[3] == 3);
  CHECK(p->kind == TILERT_PARAM_VIEW && p->part == TILERT_TENSOR_MAP && p->size == 128 && p->of == 0 && p->box[2] == 64 && p->swizzle == 128);
  CHECK(p->extents[0].times == INT32_MAX && !p->extents[0].n && p->extents[1].times == 1 && p->extents[1].n == 1 && p->extents[1].param[0] == 1);
  CHECK(p->strides[0].times == 64 && p->strides[0].n == 2 && p->strides[0].param[1] == 2 && p->strides[1].times == -8);
#define BAD(view, says) CHECK_FAILS(parse(LINE(ARGS ",p:view:" view), &m, 1, &n), TILERT_E_MODULE, says)
  BAD("f16:rank=1:map=64:of=1:extents=$1", "no pointer");
  BAD("f32:rank=1:map=64:of=0:extents=$1", "no pointer");
  BAD("f16:rank=1:map=64:of=9:extents=$1", "no pointer");
  BAD("f16:rank=1:map=64:of=0:extents=$0", "no integer");
  BAD("f16:rank=1:map=64:of=0:extents=$3", "no integer");
  BAD("f16:rank=1:map=64:of=0:extents=$9", "no integer");
  BAD("f16:rank=2:map=8x64:of=0:extents=8x8:strides=$3", "no integer");
  BAD("f16:rank=1:map=64:of=0:extents=$1*$1*$1*$1", "bad part");
  BAD("f16:rank=1:map=64:of=0:extents=$1*8", "bad part");
  BAD("f16:rank=1:map=64:of=0:extents=x", "bad part");
  BAD("f16:rank=1:map=64:of=0:extents=--1", "bad part");
  BAD("f16:rank=1:map=64:of=0:extents=1x1x1x1x1x1", "bad part");
  BAD("f16:rank=1:base:of=0:extents=$1", "a view is a map");
  BAD("f16:rank=1:of=0:extents=$1", "unknown part");
  BAD("f16:rank=1:map=7:of=0:extents=$1", "multiple of 16 bytes");
  CHECK_FAILS(parse(LINE(VIEW "," ARGS), &m, 1, &n), TILERT_E_MODULE, "before an argument");
  CHECK_FAILS(parse(LINE("x:ptr:f32:nonneg"), &m, 1, &n), TILERT_E_MODULE, "alignment");
}

/* A persistent kernel is told the grid by its three last parameters. */
#define GRID "grid:grid:i32:axis=0,grid:grid:i32:axis=1,grid:grid:i32:axis=2"

static void
test_persistent(void)
{
  static TilertManifest m;
  uint32_t first[TILERT_MAX_PARAMS];
  size_t n;
  CHECK_OK(parse(LINE(ARGS "," VIEW "," GRID) " persistent=2", &m, 1, &n));
  CHECK(m.persistent == 2 && m.nparams == 8 && tilert_manifest_args(&m, first) == 4);
  CHECK(m.params[5].kind == TILERT_PARAM_GRID && m.params[5].size == 4 && m.params[7].dim == 2);
  CHECK_OK(parse(LINE(GRID) " persistent=32", &m, 1, &n));
  CHECK(tilert_manifest_args(&m, first) == 0);
#define BAD_GRID(params, field, says) CHECK_FAILS(parse(LINE(params) field, &m, 1, &n), TILERT_E_MODULE, says)
  BAD_GRID(ARGS "," GRID, "", "three parameters");
  BAD_GRID(ARGS, " persistent=1", "three parameters");
  BAD_GRID(GRID "," ARGS, " persistent=1", "last parameters");
  BAD_GRID(ARGS "," GRID "," VIEW, " persistent=1", "last parameters");
  BAD_GRID("grid:grid:i32:axis=0,grid:grid:i32:axis=2,grid:grid:i32:axis=1", " persistent=1", "last parameters");
  BAD_GRID(GRID ",grid:grid:i32:axis=2", " persistent=1", "three parameters");
  BAD_GRID(GRID, " persistent=1 cluster=2x1x1", "no cluster");
  BAD_GRID(GRID, " persistent=x", "number of programs");
  BAD_GRID("grid:grid:i32:place=0", " persistent=1", "axis of the grid");
}

/* What is written is read back, and written the same again. */
static void
test_text(void)
{
  static const char *const lines[] = {
    LINE("") "\n", "//@tilec kernel=k warps=4 shared=0 params=n:scalar:i32\n", LINE("n:scalar:i32:16,x:ptr:f32,y:ptr:f16:16:nonnull,z:ptr:i32:null,t:tensormap:f16") " apart=1:2,1:3,2:3\n",
    LINE("x:ptr:f32,n:scalar:i32,y:ptr:f16:16,z:ptr:i32") " apart=0:2 needs=0,2\n",
    LINE(ARGS "," VIEW) "\n", "//@tilec kernel=k warps=4 shared=0 persistent=2 params=" ARGS "," VIEW "," GRID "\n",
    LINE(PARTS ",b:tensor:f32:rank=1:map=64:tf32,c:tensor:u8:rank=5:map=1x2x3x4x32:swizzle=32:stored") "\n",
  };
  static TilertManifest m;
  char text[1024];
  size_t n;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    CHECK_OK(parse(lines[i], &m, 1, &n));
    CHECK(tilert_manifest_text(&m, NULL, 0) == strlen(lines[i]));
    CHECK(tilert_manifest_text(&m, text, sizeof text) == strlen(lines[i]) && !strcmp(text, lines[i]));
    CHECK(tilert_manifest_text(&m, text, 9) == strlen(lines[i]) && !strcmp(text, "//@tilec"));
  }
  m.params[0].kind = TILERT_PARAM_RAW;
  CHECK(tilert_manifest_text(&m, text, sizeof text) == 0 && !*text);
  CHECK(tilert_manifest_text(NULL, text, sizeof text) == 0);
}

int
main(void)
{
  test_two_kernels();
  test_odd_but_good();
  test_bad();
  test_cluster();
  test_grid();
  test_apart();
  test_tensors();
  test_bad_tensors();
  test_views();
  test_persistent();
  test_text();
  return 0;
}
