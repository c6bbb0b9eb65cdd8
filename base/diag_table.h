/* diag_table.h - what is kept of diagnostics between reporting (diag.c) and rendering (diag_text.c, diag_json.c). */
#ifndef TILEC_DIAG_TABLE_H
#define TILEC_DIAG_TABLE_H
#include "base.h"

typedef enum Severity { SEV_ERROR, SEV_WARNING, SEV_REMARK, SEV_NOTE } Severity;
typedef enum NoteKind {
  NOTE_LABEL,             /* words beside another place, shown with its line */
  NOTE_TEXT,              /* words without a place of their own */
  NOTE_HINT,              /* what to write instead */
  NOTE_CALL               /* a call through which the place was reached, innermost first */
} NoteKind;
typedef struct Note { NoteKind kind; Span at; const char *message; } Note;
struct Diag {
  Span at;
  DiagId id;
  u32 seq;                /* order of reporting */
  bool moved;             /* to a place that others may have been moved to: only the first is shown */
  const char *message;
  VEC(Note) notes;
};
typedef struct DiagTable {
  VEC(Diag *) list;
  u32 errors, warnings;
} DiagTable;

typedef struct DiagRow { const char *code, *fmt; Severity severity; } DiagRow;
extern const DiagRow diag_rows[DIAG_COUNT];

const char *severity_name(Severity s);
const char *diag_plain(Ctx *c, const char *text);                /* without control characters; diag.c */
void diag_text(Ctx *c, Buf *out, const Diag *d, bool color);     /* diag_text.c */
void diag_json(Ctx *c, Buf *out, const Diag *d);                 /* diag_json.c */
#endif
