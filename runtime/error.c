#include "device.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
rt_error_set(TilertError *err, int status, const char *format, ...)
{
  va_list ap;
  if (!err)
    return status;
  memset(err, 0, sizeof *err);
  err->status = status;
  va_start(ap, format);
  vsnprintf(err->message, sizeof err->message, format, ap);
  va_end(ap);
  return status;
}

int
error_no_memory(TilertError *err)
{
  return rt_error_set(err, TILERT_E_MEMORY, "the host is out of memory");
}

int
error_null(TilertError *err, const char *function, const char *pointer)
{
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s: %.*s is NULL", function, (int)strcspn(pointer, " "), pointer);
}

int
error_prefix(TilertError *err, int status, const char *format, ...)
{
  char old[sizeof err->message];
  va_list ap;
  if (!err)
    return status;
  memcpy(old, err->message, sizeof old);
  err->status = status;
  va_start(ap, format);
  vsnprintf(err->message, sizeof err->message, format, ap);
  va_end(ap);
  size_t n = strlen(err->message);
  snprintf(err->message + n, sizeof err->message - n, ": %s", old);
  return status;
}

const char *
tilert_status_name(int status)
{
  static const char *const names[] = {
    "ok",
#define STATUS(id, name, doc) [TILERT_E_##id] = name,
#include "status.def"
#undef STATUS
  };
  _Static_assert(sizeof names / sizeof names[0] == TILERT_STATUS_COUNT, "a row of status.def for each status");
  return status >= 0 && status < TILERT_STATUS_COUNT ? names[status] : "unknown";
}

int
tilert_version_check(int header, TilertError *err)
{
  if (header <= TILEC_VERSION_NUMBER)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "the program was built with headers of version %d.%d.%d; this library is %s: it is older",
                      header / 10000, header / 100 % 100, header % 100, tilert_version());
}

const char *
tilert_version(void)
{
  return TILEC_VERSION;
}
