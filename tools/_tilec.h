/* _tilec.h - what the files of the extension module share: CPython's stable ABI of 3.9, and how errors of the library are raised. */
#ifndef TILEC_EXTENSION_H
#define TILEC_EXTENSION_H
#include <Python.h>
#include <structmember.h>
#include "jit.h"

/* CPython has had these since 3.8; the headers show them to users of the stable ABI only later. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define COUNT_MASK (~((size_t)1 << (8 * sizeof(size_t) - 1)))   /* the top bit of a vectorcall's count is a flag */

typedef int RunFn(TilejitKernel *, TilertStream *, const uint32_t[3], const TilertArg *, size_t, TilertError *);
typedef PyObject *Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);

/* The function of C with one argument that `current` is, to be called as the interpreter calls it, and its self; NULL: it is none. */
static inline PyCFunction
function_of_c(PyObject *current, PyObject **self)
{
  *self = NULL;
  if (!PyCFunction_CheckExact(current) || PyCFunction_GetFlags(current) != METH_O)
    return NULL;
  *self = PyCFunction_GetSelf(current);
  return PyCFunction_GetFunction(current);
}

/* Raises what fail makes of the error. */
PyObject *raise_error(PyObject *fail, const TilertError *err);
/* The address that f(x) gives; NULL with an exception if it raises. */
void *address_of(PyObject *f, PyObject *x);
/* Add the type Dispatcher to the module: 0, or -1 with an exception. */
int add_dispatcher(PyObject *module);
#endif
