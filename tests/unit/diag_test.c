/* diag_test.c - how diagnostics look: several marks on a line, other files, long lines, tabs, calls, colours. */
#include "base.h"
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void
check_text(int line, const char *got, const char *want)
{
  if (!strcmp(got, want))
    return;
  printf("%s:%d:\n--- got\n%s--- want\n%s", __FILE__, line, got, want);
  failures++;
}
#define CHECK_TEXT(got, want) check_text(__LINE__, got, want)
#define CHECK(c) (void)((c) || (printf("%s:%d: %s\n", __FILE__, __LINE__, #c), failures++))

static const char *
rendered(Ctx *c, bool color)
{
  Buf b = {.arena = c->scratch};
  diag_render(c, &b, false, color);
  return buf_str(&b);
}

static Span
at(u32 base, u32 from, u32 n)
{
  return (Span){base + from, base + from + n};
}

static void
test_marks(void)
{
  Ctx *c = ctx_new();
  static const char text[] = "let a = f(1);\n\nlet b = a + c;\nlet d = 0;\n";
  u32 k = source_add(c, SOURCE_PROGRAM, "k.tile", text, sizeof text - 1);
  Diag *d = diag(c, at(k, 25, 1), E_SYNTAX, "they differ");
  diag_note(c, d, at(k, 23, 1), "left");
  diag_note(c, d, at(k, 27, 1), "right");
  diag_note(c, d, at(k, 23, 5), "all");
  diag_note(c, d, at(k, 8, 4), "made here");
  diag_note(c, d, at(k, 8, 4), "made here");
  diag_note(c, d, at(k, 25, 1), "below");
  diag_note(c, d, (Span){0, 0}, "nowhere");
  diag_hint(c, d, "write %s", "x");
  CHECK_TEXT(rendered(c, false),
             "k.tile:3:11: error[E0101]: they differ\n"
             " 1 | let a = f(1);\n   |         ---- made here\n"
             " ...\n"
             " 3 | let b = a + c;\n"
             "   |         --^-- right\n"
             "   |         |\n"
             "   |         left\n"
             "   |         all\n"
             "   = note: below\n   = note: nowhere\n   = hint: write x\n");
  ctx_free(c);
}

static void
test_places(void)
{
  Ctx *c = ctx_new();
  static const char text[] = "\tx\ty\n", other[] = "fn f() {}\n";
  u32 k = source_add(c, SOURCE_PROGRAM, "k.tile", text, sizeof text - 1), o = source_add(c, SOURCE_PROGRAM, "o.tile", other, sizeof other - 1);
  Diag *d = diag(c, at(k, 3, 1), E_SYNTAX, "tabs");
  diag_note(c, d, at(k, 1, 1), "x");
  diag_note(c, d, at(o, 3, 1), "f");
  diag_note(c, d, source_foreign(c, "far.tile", 7, 2), "far");
  diag_call(c, d, at(k, 1, 1), "in g, called here");
  CHECK_TEXT(rendered(c, false),
             "k.tile:1:4: error[E0101]: tabs\n"
             " 1 |     x   y\n   |     -   ^\n   |     |\n   |     x\n"
             "   ::: o.tile:1:4\n 1 | fn f() {}\n   |    - f\n"
             "   = far.tile:7:2: far\n"
             "k.tile:1:2: note: in g, called here\n"
             " 1 |     x   y\n   |     -\n");
  diag_move(c, d, at(o, 3, 1), "it was here");
  CHECK(!strncmp(rendered(c, false), "o.tile:1:4: error[E0101]: tabs\n", 31));
  CHECK(strstr(rendered(c, true), "\033[1;31merror[E0101]\033[0m"));
  CHECK(!strstr(rendered(c, false), "\033"));
  ctx_free(c);
}

/* Every place in a long line, with characters of several bytes in it, is shown with its mark under it. */
static void
test_long_lines(void)
{
  for (u32 from = 0; from < 600; from += 7) {
    Ctx *c = ctx_new();
    char text[700];
    memset(text, '.', sizeof text);
    memcpy(text + 300, "\xc3\xa4\t\xe2\x82\xac", 6);
    if (from >= 300 && from < 306) {
      ctx_free(c);
      continue;
    }
    text[from] = '@';
    u32 k = source_add(c, SOURCE_PROGRAM, "k.tile", text, sizeof text);
    diag_note(c, diag(c, at(k, from, 1), E_SYNTAX, "here"), at(k, 650, 40), "there");
    const char *s = rendered(c, false), *line = strstr(s, " | ") + 3, *marks = strstr(line, "\n   | ") + 6;
    u32 cell = 0, mark = (u32)strcspn(marks, "^");
    for (const char *p = line; *p != '@' && *p != '\n'; p++)
      cell += ((u8)*p & 0xc0) != 0x80;
    CHECK(cell == mark && strcspn(line, "\n") < 180);
    ctx_free(c);
  }
}

static void
test_calls(void)
{
  Ctx *c = ctx_new();
  u32 k = source_add(c, SOURCE_PROGRAM, "k.tile", "abcdefghijklmnop", 16);
  Diag *d = diag(c, at(k, 0, 1), E_SYNTAX, "deep");
  for (u32 i = 1; i <= 12; i++)
    diag_call(c, d, at(k, i, 1), "in f%u, called here", i);
  const char *s = rendered(c, false);
  CHECK(strstr(s, "in f4,") && !strstr(s, "in f5,") && strstr(s, "... 5 calls more ...") && !strstr(s, "in f9,") && strstr(s, "in f10,") &&
        strstr(s, "in f12,"));
  ctx_free(c);
}

int
main(void)
{
  test_marks();
  test_places();
  test_long_lines();
  test_calls();
  printf(failures ? "%d failures\n" : "ok\n", failures);
  return failures != 0;
}
