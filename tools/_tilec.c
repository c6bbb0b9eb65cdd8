/* _tilec.c - the launch of a bound call from Python without ctypes in between: a type whose instances are launches.
 *
 * Written against CPython's stable ABI of 3.9, so that one file serves every later version. It is linked with nothing: tilec/__init__.py,
 * which has opened the library, hands over the addresses of the functions. Everything else of the Python interface is there,
 * which works without this module, too; a launch then costs what ctypes costs.
 *
 *   Launcher(launch, call, fail, stream_of, current, ordinal)
 *     launch, call        addresses of tilejit_call_launch and of a TilejitCall, which whoever makes the Launcher keeps alive
 *     fail                fail(address of a TilertError) raises
 *     stream_of           stream_of(what stands for a stream) gives the address of a TilertStream that lives as long as the Launcher;
 *                         0: the default one
 *     current, ordinal    current(ordinal) gives the native stream (a CUstream) to launch in, as an integer; None: the default one
 *   launcher()            launches in the current stream, as launcher(None) does
 *   launcher(stream)      launches in this one; what an object stands for is asked once, as long as it is given again and again
 *   launcher.repeat(n)    launches n times from C in the stream that is current now
 *   run(launch, kernel, stream, gx, gy, gz, arguments, count, fail)
 *     tilejit_launch with packed TilertArgs (bytes)
 *   Dispatcher               launches that are not bound: _dispatch.c
 *   sizes()                  of TilertError and TilertArg, which tilec/__init__.py compares with its own
 *
 * In the steady state a launch allocates nothing: which TilertStream the last native one was is remembered, and a `current` that is a
 * function of C with one argument, as torch's is, is called without the interpreter in between. The launch itself runs without the
 * interpreter's lock, although it only queues: a driver whose queue is full waits, and what it waits for may be a callback that wants the
 * lock. All else, the fields of a Launcher among it, is touched under it.
 */
#include "_tilec.h"

typedef int LaunchFn(const TilejitCall *, TilertStream *, TilertError *);

typedef struct Launcher {
  PyObject_HEAD
  Vectorcall *vectorcall;
  LaunchFn *launch;
  TilejitCall *call;
  PyObject *fail, *stream_of, *current, *ordinal;
  PyCFunction current_c;         /* the function of C that current is, and its self; NULL: it is something else */
  PyObject *current_self;
  void *native;                  /* the current stream of the last launch, and ours of it */
  TilertStream *stream;
  PyObject *given;               /* what was last given for a stream, and ours of it */
  TilertStream *given_stream;
} Launcher;

PyObject *
raise_error(PyObject *fail, const TilertError *err)
{
  PyObject *done = PyObject_CallFunction(fail, "K", (unsigned long long)(uintptr_t)err);
  if (done) {
    Py_DECREF(done);
    PyErr_SetString(PyExc_SystemError, "an error was not raised");
  }
  return NULL;
}

void *
address_of(PyObject *f, PyObject *x)
{
  PyObject *given = PyObject_CallFunctionObjArgs(f, x, NULL);
  void *address = given ? PyLong_AsVoidPtr(given) : NULL;
  Py_XDECREF(given);
  return address;
}

/* Ours of a native stream, remembered; NULL with an exception if there is none. */
static TilertStream *
stream_of_native(Launcher *l, void *native, PyObject *handle)
{
  if (native != l->native) {
    TilertStream *s = address_of(l->stream_of, handle);
    if (!s)
      return NULL;
    l->stream = s;
    l->native = native;
  }
  return l->stream;
}

/* The stream to launch in if none is given: 0, or -1 with an exception. */
static int
current_stream(Launcher *l, TilertStream **out)
{
  *out = NULL;
  if (l->current == Py_None)
    return 0;
  PyObject *handle = l->current_c ? l->current_c(l->current_self, l->ordinal) : PyObject_CallFunctionObjArgs(l->current, l->ordinal, NULL);
  if (!handle)
    return -1;
  void *native = PyLong_AsVoidPtr(handle);
  if (native)
    *out = stream_of_native(l, native, handle);
  Py_DECREF(handle);
  return !*out && PyErr_Occurred() ? -1 : 0;
}

static PyObject *
launch_in(Launcher *l, TilertStream *s, size_t times)
{
  TilertError err;
  int status = 0;
  Py_BEGIN_ALLOW_THREADS
  for (; times && !status; times--)
    status = l->launch(l->call, s, &err);
  Py_END_ALLOW_THREADS
  if (status)
    return raise_error(l->fail, &err);
  Py_RETURN_NONE;
}

/* The stream that was given: 0, or -1 with an exception. */
static int
given_stream(Launcher *l, PyObject *given, TilertStream **out)
{
  if (given != l->given) {
    PyObject *before = l->given;
    TilertStream *s = address_of(l->stream_of, given);
    if (!s && PyErr_Occurred())
      return -1;
    Py_INCREF(given);
    l->given = given;
    l->given_stream = s;
    Py_XDECREF(before);
  }
  *out = l->given_stream;
  return 0;
}

static PyObject *
launcher_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
  Launcher *l = (Launcher *)self;
  TilertStream *s;
  count &= COUNT_MASK;
  if (count > 1 || names)
    return PyErr_Format(PyExc_TypeError, "a bound launch takes a stream or nothing");
  int failed = !count || args[0] == Py_None ? current_stream(l, &s) : given_stream(l, args[0], &s);
  return failed ? NULL : launch_in(l, s, 1);
}

static PyObject *
launcher_repeat(PyObject *self, PyObject *times)
{
  Launcher *l = (Launcher *)self;
  TilertStream *s;
  size_t n = PyLong_AsSize_t(times);
  return PyErr_Occurred() || current_stream(l, &s) ? NULL : launch_in(l, s, n);
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
  unsigned long long launch, call;
  PyObject *fail, *stream_of, *current, *ordinal;
  if (!PyArg_ParseTuple(args, "KKOOOO", &launch, &call, &fail, &stream_of, &current, &ordinal))
    return NULL;
  Launcher *l = (Launcher *)PyType_GenericNew(type, args, named);
  if (!l)
    return NULL;
  l->vectorcall = launcher_vectorcall;
  l->launch = (LaunchFn *)(uintptr_t)launch;
  l->call = (TilejitCall *)(uintptr_t)call;
  Py_INCREF(fail), Py_INCREF(stream_of), Py_INCREF(current), Py_INCREF(ordinal);
  l->fail = fail, l->stream_of = stream_of, l->current = current, l->ordinal = ordinal;
  l->current_c = function_of_c(current, &l->current_self);      /* called without the interpreter in between */
  return (PyObject *)l;
}

static void
launcher_dealloc(PyObject *self)
{
  Launcher *l = (Launcher *)self;
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(l->fail), Py_XDECREF(l->stream_of), Py_XDECREF(l->current), Py_XDECREF(l->ordinal), Py_XDECREF(l->given);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyMemberDef launcher_members[] = {
  {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, NULL},
  {NULL, 0, 0, 0, NULL},
};

static PyMethodDef launcher_methods[] = {
  {"repeat", launcher_repeat, METH_O, "Launch so many times from C, in the current stream: what launches cost without Python."},
  {NULL, NULL, 0, NULL},
};

static PyType_Slot launcher_slots[] = {
  {Py_tp_new, launcher_new},
  {Py_tp_dealloc, launcher_dealloc},
  {Py_tp_call, launcher_call},
  {Py_tp_members, launcher_members},
  {Py_tp_methods, launcher_methods},
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
  const int own = args[3] == Py_None;                /* the kernel's grid clause says it */
  for (int i = 0; i < 3 && !own; i++)
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
  status = launch(kernel, stream, own ? NULL : grid, (const TilertArg *)(const void *)packed, count, &err);
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

PyMODINIT_FUNC PyInit__tilec(void);   /* Python finds it by name */

PyMODINIT_FUNC
PyInit__tilec(void)
{
  PyObject *m = PyModule_Create(&module), *type = m ? PyType_FromSpec(&launcher_spec) : NULL;
  if (type && !PyModule_AddObject(m, "Launcher", type)) {
    if (!add_dispatcher(m))
      return m;
  } else {
    Py_XDECREF(type);
  }
  Py_XDECREF(m);
  return NULL;
}
