/* diag_json.c - diagnostics for machines: one JSON object a line. docs/diagnostics.md tells what is in it. */
#include "diag_table.h"

/* Length of the well-formed UTF-8 character at s, 0 if there is none. */
static u32
utf8_length(const u8 *s)
{
  u32 n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  for (u32 i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
  bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return n > 2 && (overlong || beyond) ? 0 : n;
}

static void
json_string(Buf *out, const char *text)
{
  buf_putc(out, '"');
  for (const u8 *s = (const u8 *)text; *s;) {
    u32 n = utf8_length(s);
    if (*s == '"' || *s == '\\')
      buf_printf(out, "\\%c", *s);
    else if (*s < 32 || *s == 127)
      buf_printf(out, "\\u%04x", *s);
    else if (n)
      buf_write(out, (const char *)s, n);
    else
      buf_puts(out, "\\ufffd");
    s += n ? n : 1;
  }
  buf_putc(out, '"');
}

static void
json_place(Ctx *c, Buf *out, const char *key, u32 offset)
{
  SourceLoc l = source_locate(c, offset);
  if (l.file)
    buf_printf(out, ",\"%s\":{\"line\":%u,\"col\":%u,\"byte\":%u}", key, l.line, l.col, l.byte);
  else
    buf_printf(out, ",\"%s\":null", key);
}

static void
json_where(Ctx *c, Buf *out, const char *message, Span at)
{
  SourceLoc l = source_locate(c, at.lo), end = source_locate(c, at.hi);
  buf_puts(out, "\"message\":");
  json_string(out, message);
  buf_puts(out, ",\"file\":");
  if (l.file)
    json_string(out, l.file);
  else
    buf_puts(out, "null");
  json_place(c, out, "start", at.lo);
  json_place(c, out, "end", l.line_text && end.file == l.file ? at.hi : at.lo);
}

/* One object on a line of its own. */
void
diag_json(Ctx *c, Buf *out, const Diag *d)
{
  static const char *const kinds[] = {
    [NOTE_LABEL] = "label", [NOTE_TEXT] = "note", [NOTE_HINT] = "hint", [NOTE_CALL] = "call",
  };
  buf_printf(out, "{\"code\":\"%s\",\"severity\":\"%s\",", diag_rows[d->id].code,
             severity_name(diag_rows[d->id].severity));
  json_where(c, out, d->message, d->at);
  buf_puts(out, ",\"notes\":[");
  for (u32 i = 0; i < d->notes.len; i++) {
    buf_printf(out, "%s{\"kind\":\"%s\",", i ? "," : "", kinds[d->notes.data[i].kind]);
    json_where(c, out, d->notes.data[i].message, d->notes.data[i].at);
    buf_putc(out, '}');
  }
  buf_puts(out, "]}\n");
}
