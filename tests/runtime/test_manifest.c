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
  CHECK_FAILS(parse("//@tilec kernel=k", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=33", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=99999999999", &m, 1, &n), TILERT_E_MODULE, "warps");
  CHECK_FAILS(parse("//@tilec kernel=k warps=4294967297", &m, 1, &n), TILERT_E_MODULE, "warps");    /* 1 and 2^32 */
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 shared=4294967296", &m, 1, &n), TILERT_E_MODULE, "shared");
  CHECK_FAILS(parse("//@tilec kernel=k warps=1 params=x:ptr:f32:4294967312", &m, 1, &n), TILERT_E_MODULE, "alignment");
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

int
main(void)
{
  test_two_kernels();
  test_odd_but_good();
  test_bad();
  test_apart();
  return 0;
}
