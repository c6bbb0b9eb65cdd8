/* _tilec.c - the launch of a bound call from Python without ctypes in between: a type whose instances are launches.
 *
 * Written against CPython's stable ABI of 3.9, so that one file serves every later version. It is linked with nothing: tilec.py,
 * which has opened the library, hands over the addresses of the functions. Everything else of the Python interface is in tilec.py,
 * which works without this module, too; a launch then costs what ctypes costs.
 *
 *   Launcher(launch, wrap, unwrap, call, device, fail, current, native, ordinal)
 *     launch, wrap, unwrap   addresses of tilejit_call_launch, tilert_stream_wrap and tilert_stream_destroy
 *     call, device           a TilejitCall and the TilertDevice it is for, as integers; whoever makes the Launcher keeps them alive
 *     fail                   fail(address of a TilertError) raises
 *     current, ordinal       current(ordinal) gives the native stream (a CUstream) to launch in, as an integer; None: the default one
 *     native                 native(stream) gives the native stream of whatever stands for one
 *   launcher()               launches in the current stream
 *   launcher(stream)         launches in this one
 *   run(launch, kernel, stream, gx, gy, gz, arguments, count, fail)
 *     tilejit_launch with packed TilertArgs (bytes)
 *   sizes()                  of TilertError and TilertArg, which tilec.py compares with its own
 *
 * In the steady state a launch allocates nothing: the wrapped stream is kept as long as the native one stays the same.
 */
#include "jit.h"
#include <Python.h>
#include <structmember.h>

/* CPython has had these since 3.8; the headers show them to users of the stable ABI only later. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define COUNT_MASK (~((size_t)1 << (8 * sizeof(size_t) - 1)))   /* the top bit of a vectorcall's count is a flag */

typedef int LaunchFn(const TilejitCall *, TilertStream *, TilertError *);
typedef int RunFn(TilejitKernel *, TilertStream *, const uint32_t[3], const TilertArg *, size_t, TilertError *);
typedef int WrapFn(TilertDevice *, void *, TilertStream **, TilertError *);
typedef void UnwrapFn(TilertStream *);
typedef PyObject *Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);

typedef struct Launcher {
  PyObject_HEAD
  Vectorcall *vectorcall;
  LaunchFn *launch;
  WrapFn *wrap;
  UnwrapFn *unwrap;
  TilejitCall *call;
  TilertDevice *device;
  PyObject *fail, *current, *native_of, *ordinal;
  void *native;                  /* the stream of the last launch, and ours of it */
  TilertStream *stream;
} Launcher;

/* Raises what fail makes of the error. */
static PyObject *
raise_error(PyObject *fail, const TilertError *err)
{
  PyObject *done = PyObject_CallFunction(fail, "K", (unsigned long long)(uintptr_t)err);
  if (done) {
    Py_DECREF(done);
    PyErr_SetString(PyExc_SystemError, "an error was not raised");
  }
  return NULL;
}

/* Our stream for what stands for one (NULL: the current stream): 0, or -1 with an exception. */
static int
find_stream(Launcher *l, PyObject *given, TilertStream **out)
{
  *out = NULL;
  if (!given && l->current == Py_None)
    return 0;
  PyObject *handle = PyObject_CallFunctionObjArgs(given ? l->native_of : l->current, given ? given : l->ordinal, NULL);
  void *native = handle ? PyLong_AsVoidPtr(handle) : NULL;
  Py_XDECREF(handle);
  if (PyErr_Occurred())
    return -1;
  if (native && native != l->native) {
    TilertError err;
    TilertStream *s;
    if (l->wrap(l->device, native, &s, &err)) {
      raise_error(l->fail, &err);
      return -1;
    }
    l->unwrap(l->stream);
    l->stream = s;
    l->native = native;
  }
  *out = native ? l->stream : NULL;
  return 0;
}

static PyObject *
launch_in(Launcher *l, TilertStream *s)
{
  TilertError err;
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = l->launch(l->call, s, &err);
  Py_END_ALLOW_THREADS
  if (status)
    return raise_error(l->fail, &err);
  Py_RETURN_NONE;
}

static PyObject *
launcher_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
  Launcher *l = (Launcher *)self;
  TilertStream *s = NULL;
  count &= COUNT_MASK;
  if (count > 1 || names)
    return PyErr_Format(PyExc_TypeError, "a bound launch takes a stream or nothing");
  return find_stream(l, count && args[0] != Py_None ? args[0] : NULL, &s) ? NULL : launch_in(l, s);
}

/* For subclasses, which take over no vectorcall before CPython 3.12. */
static PyObject *
launcher_call(PyObject *self, PyObject *args, PyObject *named)
{
  Py_ssize_t n = PyTuple_Size(args);
  PyObject *first = n == 1 ? PyTuple_GetItem(args, 0) : NULL;
  if (n > 1 || (named && PyDict_Size(named)))
    return PyErr_Format(PyExc_TypeError, "a bound launch takes a stream or nothing");
  return launcher_vectorcall(self, &first, (size_t)n, NULL);
}

static PyObject *
launcher_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
  unsigned long long launch, wrap, unwrap, call, device;
  PyObject *fail, *current, *native_of, *ordinal;
  if (!PyArg_ParseTuple(args, "KKKKKOOOO", &launch, &wrap, &unwrap, &call, &device, &fail, &current, &native_of, &ordinal))
    return NULL;
  Launcher *l = (Launcher *)PyType_GenericNew(type, args, named);
  if (!l)
    return NULL;
  l->vectorcall = launcher_vectorcall;
  l->launch = (LaunchFn *)(uintptr_t)launch;
  l->wrap = (WrapFn *)(uintptr_t)wrap;
  l->unwrap = (UnwrapFn *)(uintptr_t)unwrap;
  l->call = (TilejitCall *)(uintptr_t)call;
  l->device = (TilertDevice *)(uintptr_t)device;
  Py_INCREF(fail), Py_INCREF(current), Py_INCREF(native_of), Py_INCREF(ordinal);
  l->fail = fail, l->current = current, l->native_of = native_of, l->ordinal = ordinal;
  return (PyObject *)l;
}

static void
launcher_dealloc(PyObject *self)
{
  Launcher *l = (Launcher *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (l->unwrap)
    l->unwrap(l->stream);
  Py_XDECREF(l->fail), Py_XDECREF(l->current), Py_XDECREF(l->native_of), Py_XDECREF(l->ordinal);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyMemberDef launcher_members[] = {
  {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, NULL},
  {NULL, 0, 0, 0, NULL},
};

static PyType_Slot launcher_slots[] = {
  {Py_tp_new, launcher_new},
  {Py_tp_dealloc, launcher_dealloc},
  {Py_tp_call, launcher_call},
  {Py_tp_members, launcher_members},
  {0, NULL},
};

static PyType_Spec launcher_spec = {
  .name = "_tilec.Launcher",
  .basicsize = sizeof(Launcher),
  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
  .slots = launcher_slots,
};

static PyObject *
run(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
  if (n != 9)
    return PyErr_Format(PyExc_TypeError, "run takes 9 arguments");
  RunFn *launch = (RunFn *)PyLong_AsVoidPtr(args[0]);
  TilejitKernel *kernel = PyLong_AsVoidPtr(args[1]);
  TilertStream *stream = PyLong_AsVoidPtr(args[2]);
  uint32_t grid[3];
  for (int i = 0; i < 3; i++)
    grid[i] = (uint32_t)PyLong_AsUnsignedLong(args[3 + i]);
  const char *packed = PyBytes_AsString(args[6]);
  size_t count = PyLong_AsSize_t(args[7]);
  if (PyErr_Occurred())
    return NULL;
  if ((size_t)PyBytes_Size(args[6]) != count * sizeof(TilertArg))
    return PyErr_Format(PyExc_ValueError, "the packed arguments are not of this count");
  TilertError err;
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = launch(kernel, stream, grid, (const TilertArg *)(const void *)packed, count, &err);
  Py_END_ALLOW_THREADS
  if (status)
    return raise_error(args[8], &err);
  Py_RETURN_NONE;
}

static PyObject *
sizes(PyObject *self, PyObject *none)
{
  return Py_BuildValue("nn", (Py_ssize_t)sizeof(TilertError), (Py_ssize_t)sizeof(TilertArg));
}

static PyMethodDef methods[] = {
  {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
  {"sizes", sizes, METH_NOARGS, NULL},
  {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tilec", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__tilec(void)
{
  PyObject *m = PyModule_Create(&module), *type = m ? PyType_FromSpec(&launcher_spec) : NULL;
  if (type && !PyModule_AddObject(m, "Launcher", type))
    return m;
  Py_XDECREF(type);
  Py_XDECREF(m);
  return NULL;
}
