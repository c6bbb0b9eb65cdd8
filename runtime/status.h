/* status.h - how calls end: what they return, and what they say. */
#ifndef TILERT_STATUS_H
#define TILERT_STATUS_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef enum TilertStatus {
  TILERT_OK = 0,
  TILERT_E_ARGUMENT,     /* the caller passed something wrong: the message names it */
  TILERT_E_UNAVAILABLE,  /* no driver, no such device, or the device cannot do this */
  TILERT_E_MEMORY,       /* host or device memory is exhausted */
  TILERT_E_MODULE,       /* the device rejects the PTX or cubin */
  TILERT_E_FAULT,        /* a kernel did something illegal; on cuda the context is lost */
  TILERT_E_DRIVER,       /* any other failure that the driver reports */
  TILERT_E_COMPILE,      /* the .tile source has errors (tilejit only) */
  TILERT_E_CANCELLED,    /* a launch was stopped by tilert_device_cancel or TilertOptions.watch (sim only) */
  TILERT_STATUS_COUNT
} TilertStatus;

typedef struct TilertError {
  int32_t status;                 /* TilertStatus */
  char message[512];
  char file[256];                 /* sim faults: the .tile file, "" if unknown */
  uint32_t line, column;          /* 0 if unknown */
  uint32_t block[3], thread[3];
} TilertError;

#ifdef __cplusplus
}
#endif
#endif
