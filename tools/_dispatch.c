/* _dispatch.c - a launch that is not bound, kernel[grid](x, y, n), checked and packed in C where its arguments are what they mostly are.
 *
 * Dispatcher is the base of the classes Kernel and SourceKernel. A call, or a call of what kernel[grid] is, goes the short way if the grid
 * is an integer, a tuple of them, None or not given (what the kernel's grid clause says), no argument is given by name, and every argument
 * is one of
 *   an Array of the parameter's type on the kernel's device,
 *   a tensor of the class and element type that this parameter has had before, contiguous, on the device, of which autograd records
 *   nothing,
 *   an int that fits, a float or an int that the type can hold.
 * For everything else, and to say what is wrong, it calls self._launch(grid, ...), which does all of it in Python. So the short way
 * never decides that something is wrong, and need not know all that may be right: it has only to refuse what _launch would refuse.
 *
 *   _prepare(launch, kernel, array, device, ordinal, stream_of, params)   the short way may be taken from here on
 *       launch, kernel   addresses of tilejit_launch and of a TilejitKernel
 *       array, device    the class Array, and the Device that its .dev must be
 *       params           (kind, least, most, limit, dtype) each; kind 0: a pointer, 1: an integer from least to most, 2: a number whose
 *                        absolute value is below limit
 *   _learn(i, tensor, current, grad)    parameter i takes tensors like this one; current(ordinal) gives the stream that torch is using,
 *                                       grad() whether autograd records
 *   _follow(kernel)                     try this Dispatcher's short way instead of one's own; None: no more
 * Errors of the launch are raised by self._fail(address of a TilertError).
 *
 * A class of tensors that has `__dlpack_c_exchange_api__` (DLPack 1.3; torch since 2.10) is asked through that: one call of C says where
 * the tensor is, of what, and how it lies, and another which stream is current, unless torch has a function of C for that. All that is
 * left to ask the object is requires_grad.
 * Others are asked by their attributes and methods, which takes several times as long.
 */
#include <math.h>
#include <string.h>
#include "_tilec.h"

enum { POINTER, INTEGER, NUMBER };

/* Of DLPack: a tensor as it lies in memory, and the table of functions of a library that has such. */
enum { DLPACK_MAJOR = 1 };
typedef struct DlDevice { int32_t type, id; } DlDevice;
typedef struct DlType { uint8_t code, bits; uint16_t lanes; } DlType;
typedef struct DlTensor {
  void *data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t *shape, *strides;               /* elements; strides NULL: the last dimension fastest, with nothing in between */
  uint64_t byte_offset;
} DlTensor;
typedef struct DlExchange {
  uint32_t major, minor;
  struct DlExchange *older;
  void (*allocate)(void), (*managed)(void), (*to_object)(void);        /* of other types; not called */
  int (*look)(void *object, DlTensor *out);                            /* borrows; NULL: there is none. -1 with an exception */
  int (*stream)(int32_t device_type, int32_t device_id, void **out);
} DlExchange;

typedef struct Param {
  int kind;
  long long least, most;
  double limit;
  PyObject *dtype;                        /* an Array's, interned */
  PyObject *tensor, *tensor_dtype;        /* NULL: none has been seen */
  PyObject *records;                      /* the attribute requires_grad of that class as C has it, called without a look-up; or NULL */
  descrgetfunc records_of;
  const DlExchange *exchange;             /* of that class, which keeps it; NULL: it has none */
  DlDevice place;                         /* by which the tensor that was seen was where it has to be, */
  DlType type;                            /* and of what */
} Param;

typedef struct Dispatcher {
  PyObject_HEAD
  Vectorcall *vectorcall;                 /* which subclasses take over since CPython 3.12 */
  RunFn *launch;
  TilejitKernel *kernel;
  PyObject *array, *device, *ordinal, *stream_of, *current, *grad, *next;
  PyCFunction current_c;
  PyObject *current_self;
  long place;                             /* the ordinal's value */
  void *native;                           /* the current stream of the last launch, and ours of it */
  TilertStream *stream;
  size_t nparams;
  Param *params;                          /* NULL: not prepared */
} Dispatcher;

typedef struct Gridded {
  PyObject_HEAD
  Vectorcall *vectorcall;
  PyObject *kernel, *grid;
} Gridded;

enum { N_DTYPE, N_DEV, N_HANDLE, N_GRAD, N_CONTIGUOUS, N_DEVICE, N_POINTER, N_LAUNCH, N_FAIL, N_EXCHANGE, NAMES };
static const char *const spelled[NAMES] = {
  "dtype", "dev", "_handle", "requires_grad", "is_contiguous", "get_device", "data_ptr", "_launch", "_fail", "__dlpack_c_exchange_api__",
};
static PyObject *names[NAMES];            /* made when the module is; CPython's own lock guards them */
static PyObject *gridded_type, *dispatcher_type;

/* Whether an attribute is this very object. */
static int
attribute_is(PyObject *v, int name, const PyObject *wanted)
{
  PyObject *a = PyObject_GetAttr(v, names[name]);
  Py_XDECREF(a);                          /* it is compared, and not looked into */
  return a == wanted;
}

static int
pack_array(const Dispatcher *d, const Param *p, PyObject *v, TilertArg *a)
{
  if (!attribute_is(v, N_DTYPE, p->dtype) || !attribute_is(v, N_DEV, d->device))
    return 0;
  PyObject *handle = PyObject_GetAttr(v, names[N_HANDLE]);
  a->u.buffer = handle ? PyLong_AsVoidPtr(handle) : NULL;
  a->kind = TILERT_ARG_BUFFER;
  Py_XDECREF(handle);
  return a->u.buffer != NULL;
}

/* What a method without arguments gives, as an integer. */
static int
asked(PyObject *v, int name, unsigned long long *out)
{
  PyObject *x = PyObject_CallMethodObjArgs(v, names[name], NULL);
  *out = x ? PyLong_AsUnsignedLongLongMask(x) : 0;
  Py_XDECREF(x);
  return x != NULL;
}

/* The last dimension fastest, with nothing in between, as far as that can be told. */
static int
is_contiguous(const DlTensor *t)
{
  int64_t dense = 1;
  int whole = 1;
  for (int32_t i = t->ndim; t->strides && i-- > 0; dense *= t->shape[i]) {
    if (t->shape[i] == 0)
      return 1;
    whole &= t->shape[i] == 1 || t->strides[i] == dense;
  }
  return whole;
}

static int
address_exchanged(const Param *p, PyObject *v, unsigned long long *address)
{
  DlTensor t;
  if (p->exchange->look(v, &t) || memcmp(&t.dtype, &p->type, sizeof t.dtype) != 0 || memcmp(&t.device, &p->place, sizeof t.device) != 0)
    return 0;
  *address = t.data ? (uintptr_t)t.data + t.byte_offset : 0;
  return is_contiguous(&t);
}

static int
address_asked(const Dispatcher *d, const Param *p, PyObject *v, unsigned long long *address)
{
  unsigned long long contiguous, place;
  return attribute_is(v, N_DTYPE, p->tensor_dtype) && asked(v, N_CONTIGUOUS, &contiguous) && contiguous && asked(v, N_DEVICE, &place) &&
         (long)place == d->place && asked(v, N_POINTER, address);
}

/* Autograd, which cannot see a launch, would have to. */
static int
is_recorded(const Dispatcher *d, const Param *p, PyObject *v)
{
  PyObject *asks = p->records ? p->records_of(p->records, v, p->tensor) : PyObject_GetAttr(v, names[N_GRAD]);
  Py_XDECREF(asks);
  if (asks == Py_False)
    return 0;
  PyObject *on = PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(d->grad, NULL);
  Py_XDECREF(on);                         /* both are compared, and not looked into */
  return on != Py_False;
}

static int
pack_tensor(const Dispatcher *d, const Param *p, PyObject *v, TilertArg *a)
{
  unsigned long long address;
  if ((PyObject *)Py_TYPE(v) != p->tensor || is_recorded(d, p, v))
    return 0;
  if (!(p->exchange ? address_exchanged(p, v, &address) : address_asked(d, p, v, &address)))
    return 0;
  a->kind = TILERT_ARG_POINTER;
  a->reserved = address ? 0 : TILERT_NO_ELEMENTS;
  a->u.pointer = address;
  return 2;
}

static int
pack_number(const Param *p, PyObject *v, TilertArg *a)
{
  int overflow = 0;
  if (p->kind == INTEGER) {
    long long i = PyLong_CheckExact(v) ? PyLong_AsLongLongAndOverflow(v, &overflow) : 0;
    a->kind = TILERT_ARG_INT;
    a->u.i = i;
    return PyLong_CheckExact(v) && !overflow && p->least <= i && i <= p->most;
  }
  if (!PyFloat_CheckExact(v) && !PyLong_CheckExact(v))
    return 0;
  double f = PyFloat_CheckExact(v) ? PyFloat_AsDouble(v) : PyLong_AsDouble(v);
  a->kind = TILERT_ARG_FLOAT;
  a->u.f = f;
  return !PyErr_Occurred() && (!isfinite(f) || fabs(f) < p->limit);
}

/* 0: not the short way; 2: a tensor of torch's. */
static int
pack(const Dispatcher *d, const Param *p, PyObject *v, TilertArg *a)
{
  a->reserved = 0;
  if (p->kind != POINTER)
    return pack_number(p, v, a);
  return (PyObject *)Py_TYPE(v) == d->array ? pack_array(d, p, v, a) : p->tensor ? pack_tensor(d, p, v, a) : 0;
}

static int
extent(PyObject *v, uint32_t *out)
{
  int overflow = 0;
  long long n = PyLong_CheckExact(v) ? PyLong_AsLongLongAndOverflow(v, &overflow) : -1;
  *out = (uint32_t)n;
  return !overflow && n >= 0 && n <= UINT32_MAX;
}

static int
extents(PyObject *grid, uint32_t out[3])
{
  out[1] = out[2] = 1;
  if (!PyTuple_CheckExact(grid))
    return extent(grid, out);
  Py_ssize_t n = PyTuple_Size(grid);
  int good = n >= 1 && n <= 3;
  for (Py_ssize_t i = 0; good && i < n; i++)
    good = extent(PyTuple_GetItem(grid, i), &out[i]);
  return good;
}

/* The native stream that torch is using, NULL also with an exception. by: a parameter that was given one of its tensors. Its own function
 * asks the device; that of the table asks first which kind of device there is. */
static void *
native_stream(Dispatcher *d, const Param *by)
{
  void *native = NULL;
  if (!d->current_c && by->exchange && by->exchange->stream) {
    if (!by->exchange->stream(by->place.type, by->place.id, &native))
      return native;
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_RuntimeError, "the table of __dlpack_c_exchange_api__ knows no current stream, and does not say why");
    return NULL;
  }
  PyObject *handle = d->current_c ? d->current_c(d->current_self, d->ordinal) : PyObject_CallFunctionObjArgs(d->current, d->ordinal, NULL);
  native = handle ? PyLong_AsVoidPtr(handle) : NULL;
  Py_XDECREF(handle);
  return native;
}

/* The stream that torch is using: 0, or -1 with an exception. */
static int
torch_stream(Dispatcher *d, const Param *by, TilertStream **out)
{
  void *native = native_stream(d, by);
  *out = NULL;
  if (native && native != d->native) {
    PyObject *handle = PyLong_FromVoidPtr(native);
    TilertStream *s = handle ? address_of(d->stream_of, handle) : NULL;
    if (s) {
      d->stream = s;
      d->native = native;
    }
    Py_XDECREF(handle);
  }
  if (native && native == d->native)
    *out = d->stream;
  return !*out && PyErr_Occurred() ? -1 : 0;
}

/* grid NULL: none is given. 1: launched; 0: not the short way, and nothing has happened; -1 with an exception. */
static int
launch(Dispatcher *d, PyObject *grid, PyObject *const *args, size_t n)
{
  TilertArg packed[TILERT_MAX_PARAMS];
  TilertStream *stream = NULL;
  uint32_t shape[3];
  const Param *torch = NULL;               /* a parameter that is given a tensor of torch's */
  int way = 1, status;
  const int own = !grid || grid == Py_None;
  if (!d->params || n != d->nparams || (!own && !extents(grid, shape)))
    return 0;
  for (size_t i = 0; i < n && way; i++) {
    way = pack(d, &d->params[i], args[i], &packed[i]);
    torch = way == 2 ? &d->params[i] : torch;
  }
  if (!way || PyErr_Occurred()) {
    PyErr_Clear();                        /* _launch meets it again, and says it */
    return 0;
  }
  if (torch && torch_stream(d, torch, &stream))
    return -1;
  TilertError err;
  Py_BEGIN_ALLOW_THREADS
  status = d->launch(d->kernel, stream, own ? NULL : shape, packed, n, &err);
  Py_END_ALLOW_THREADS
  if (!status)
    return 1;
  PyObject *fail = PyObject_GetAttr((PyObject *)d, names[N_FAIL]);
  if (fail)
    raise_error(fail, &err);
  Py_XDECREF(fail);
  return -1;
}

/* Try the short way: as launch. */
static int
try_launch(PyObject *self, PyObject *grid, PyObject *const *args, size_t n)
{
  Dispatcher *d = (Dispatcher *)self, *of = d->next ? (Dispatcher *)d->next : d;
  Py_INCREF(of);                          /* another thread may let it go while this one launches */
  int done = launch(of, grid, args, n);
  Py_DECREF(of);
  return done;
}

/* The long way: self._launch(grid, *args, **named), without the grid if it is NULL. */
static PyObject *
launch_in_python(PyObject *self, PyObject *grid, PyObject *const *args, size_t n, PyObject *named)
{
  PyObject *function = PyObject_GetAttr(self, names[N_LAUNCH]), *result = NULL;
  const size_t first = grid != NULL;
  PyObject *all = function ? PyTuple_New((Py_ssize_t)(n + first)) : NULL;
  if (all) {
    Py_XINCREF(grid);
    if (grid)
      PyTuple_SetItem(all, 0, grid);
    for (size_t i = 0; i < n; i++) {
      Py_INCREF(args[i]);
      PyTuple_SetItem(all, (Py_ssize_t)(i + first), args[i]);
    }
    result = PyObject_Call(function, all, named);
  }
  Py_XDECREF(function);
  Py_XDECREF(all);
  return result;
}

static PyObject *
dispatch(PyObject *self, PyObject *grid, PyObject *const *args, size_t n, PyObject *named)
{
  int done = named ? 0 : try_launch(self, grid, args, n);
  if (done < 0)
    return NULL;
  if (done)
    Py_RETURN_NONE;
  return launch_in_python(self, grid, args, n, named);
}

/* kernel(grid, ...) or, as many arguments as the kernel has, kernel(...) */
static PyObject *
dispatch_all(PyObject *self, PyObject *const *args, size_t n, PyObject *named)
{
  int done = 0;
  if (n && !named) {
    done = try_launch(self, args[0], args + 1, n - 1);
    done = done ? done : try_launch(self, NULL, args, n);
  }
  if (done < 0)
    return NULL;
  if (done)
    Py_RETURN_NONE;
  return launch_in_python(self, NULL, args, n, named);
}

/* For callers that know no vectorcall, and classes that have none. */
static PyObject *
dispatcher_call(PyObject *self, PyObject *args, PyObject *named)
{
  PyObject *items[TILERT_MAX_PARAMS + 2];
  Py_ssize_t n = PyTuple_Size(args);
  if (n <= TILERT_MAX_PARAMS + 1) {
    for (Py_ssize_t i = 0; i < n; i++)
      items[i] = PyTuple_GetItem(args, i);
    return dispatch_all(self, items, (size_t)n, named && PyDict_Size(named) ? named : NULL);
  }
  PyObject *function = PyObject_GetAttr(self, names[N_LAUNCH]), *result = function ? PyObject_Call(function, args, named) : NULL;
  Py_XDECREF(function);
  return result;
}

/* The arguments by name of a vectorcall, as a dict; NULL: there are none, or, with an exception, no memory. */
static PyObject *
named_of(PyObject *const *values, PyObject *keywords)
{
  PyObject *named = keywords && PyTuple_Size(keywords) ? PyDict_New() : NULL;
  for (Py_ssize_t i = 0; named && i < PyTuple_Size(keywords); i++)
    if (PyDict_SetItem(named, PyTuple_GetItem(keywords, i), values[i])) {
      Py_DECREF(named);
      return NULL;
    }
  return named;
}

static PyObject *
dispatcher_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords)
{
  size_t n = count & COUNT_MASK;
  PyObject *named = named_of(args + n, keywords);
  PyObject *result = !named && PyErr_Occurred() ? NULL : dispatch_all(self, args, n, named);
  Py_XDECREF(named);
  return result;
}

/* kernel[grid](...) */
static PyObject *
gridded_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords)
{
  Gridded *g = (Gridded *)self;
  size_t n = count & COUNT_MASK;
  PyObject *named = named_of(args + n, keywords);
  PyObject *result = !named && PyErr_Occurred() ? NULL : dispatch(g->kernel, g->grid, args, n, named);
  Py_XDECREF(named);
  return result;
}

static void
gridded_dealloc(PyObject *self)
{
  Gridded *g = (Gridded *)self;
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(g->kernel), Py_XDECREF(g->grid);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/* For callers that know no vectorcall. */
static PyObject *
gridded_call(PyObject *self, PyObject *args, PyObject *named)
{
  Gridded *g = (Gridded *)self;
  Py_ssize_t n = PyTuple_Size(args);
  PyObject *all = PyTuple_New(n + 1), *result = NULL;
  if (!all)
    return NULL;
  Py_INCREF(g->grid);
  PyTuple_SetItem(all, 0, g->grid);
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *v = PyTuple_GetItem(args, i);
    Py_INCREF(v);
    PyTuple_SetItem(all, i + 1, v);
  }
  result = dispatcher_call(g->kernel, all, named);
  Py_DECREF(all);
  return result;
}

/* kernel[grid] */
static PyObject *
dispatcher_at(PyObject *self, PyObject *grid)
{
  Gridded *g = PyObject_New(Gridded, (PyTypeObject *)gridded_type);
  if (!g)
    return NULL;
  Py_INCREF(self), Py_INCREF(grid);
  g->kernel = self, g->grid = grid, g->vectorcall = gridded_vectorcall;
  return (PyObject *)g;
}

static int
read_param(PyObject *row, Param *p)
{
  PyObject *dtype;
  if (!PyArg_ParseTuple(row, "iLLdO", &p->kind, &p->least, &p->most, &p->limit, &dtype))
    return 0;
  Py_INCREF(dtype);
  p->dtype = dtype;
  return 1;
}

static void
free_params(Param *params, size_t n)
{
  for (size_t i = 0; params && i < n; i++) {
    Py_XDECREF(params[i].dtype), Py_XDECREF(params[i].tensor), Py_XDECREF(params[i].tensor_dtype), Py_XDECREF(params[i].records);
  }
  PyMem_Free(params);
}

static PyObject *
dispatcher_prepare(PyObject *self, PyObject *args)
{
  Dispatcher *d = (Dispatcher *)self;
  unsigned long long run, kernel;
  PyObject *array, *device, *ordinal, *stream_of, *rows;
  if (!PyArg_ParseTuple(args, "KKOOOOO!", &run, &kernel, &array, &device, &ordinal, &stream_of, &PyTuple_Type, &rows))
    return NULL;
  size_t n = (size_t)PyTuple_Size(rows);
  if (d->params || n > TILERT_MAX_PARAMS)
    return PyErr_Format(PyExc_ValueError, "prepared twice, or for too many parameters");
  Param *params = PyMem_Calloc(n + 1, sizeof *params);
  int good = params != NULL;
  for (size_t i = 0; good && i < n; i++)
    good = read_param(PyTuple_GetItem(rows, (Py_ssize_t)i), &params[i]);
  long place = good ? PyLong_AsLong(ordinal) : 0;
  if (!good || PyErr_Occurred()) {
    free_params(params, n);
    return params ? NULL : PyErr_NoMemory();
  }
  Py_INCREF(array), Py_INCREF(device), Py_INCREF(ordinal), Py_INCREF(stream_of);
  d->array = array, d->device = device, d->ordinal = ordinal, d->stream_of = stream_of;
  d->launch = (RunFn *)(uintptr_t)run, d->kernel = (TilejitKernel *)(uintptr_t)kernel;
  d->place = place, d->nparams = n, d->params = params;
  Py_RETURN_NONE;
}

static void
replace(PyObject **at, PyObject *with)
{
  PyObject *before = *at;
  Py_XINCREF(with);
  *at = with;
  Py_XDECREF(before);
}

/* The table of a class of tensors, as far as it is one that is known here; NULL, without an exception, if there is none. */
static const DlExchange *
exchange_of(PyTypeObject *type)
{
  PyObject *capsule = PyObject_GetAttr((PyObject *)type, names[N_EXCHANGE]);
  const DlExchange *x = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  PyErr_Clear();
  while (x && x->major > DLPACK_MAJOR)
    x = x->older;
  Py_XDECREF(capsule);                    /* the class keeps it */
  return x && x->major == DLPACK_MAJOR && x->look ? x : NULL;
}

/* Whether it is an attribute that a getter of C gives. Its type has no name in the stable ABI. */
static int
is_of_c(PyObject *attribute)
{
  PyObject *types = PyImport_ImportModule("types"), *t = types ? PyObject_GetAttrString(types, "GetSetDescriptorType") : NULL;
  int is = t && (PyObject *)Py_TYPE(attribute) == t;
  PyErr_Clear();
  Py_XDECREF(t);
  Py_XDECREF(types);
  return is;
}

static void
learn_records(Param *p, PyTypeObject *type)
{
  PyObject *a = PyObject_GetAttr((PyObject *)type, names[N_GRAD]);
  PyErr_Clear();
  int of_c = a && is_of_c(a);
  p->records_of = of_c ? (descrgetfunc)PyType_GetSlot(Py_TYPE(a), Py_tp_descr_get) : NULL;
  replace(&p->records, p->records_of ? a : NULL);
  Py_XDECREF(a);
}

/* A tensor that was right, so others of its class, type and device are. */
static PyObject *
dispatcher_learn(PyObject *self, PyObject *args)
{
  Dispatcher *d = (Dispatcher *)self;
  Py_ssize_t i;
  PyObject *v, *current, *grad;
  if (!PyArg_ParseTuple(args, "nOOO", &i, &v, &current, &grad))
    return NULL;
  if (!d->params || i < 0 || (size_t)i >= d->nparams || d->params[i].kind != POINTER)
    Py_RETURN_NONE;
  Param *p = &d->params[i];
  DlTensor t;
  PyObject *dtype = PyObject_GetAttr(v, names[N_DTYPE]);
  if (!dtype)
    return NULL;
  replace(&p->tensor, NULL);              /* what follows is of another class */
  replace(&d->current, current);
  d->current_c = function_of_c(current, &d->current_self);
  replace(&d->grad, grad);
  learn_records(p, Py_TYPE(v));
  p->exchange = exchange_of(Py_TYPE(v));
  if (p->exchange && p->exchange->look(v, &t)) {
    PyErr_Clear();
    p->exchange = NULL;
  } else if (p->exchange) {
    p->place = t.device;
    p->type = t.dtype;
  }
  replace(&p->tensor_dtype, dtype);
  replace(&p->tensor, (PyObject *)Py_TYPE(v));
  Py_DECREF(dtype);
  Py_RETURN_NONE;
}

static PyObject *
dispatcher_follow(PyObject *self, PyObject *next)
{
  Dispatcher *d = (Dispatcher *)self;
  int fits = next == Py_None ? 1 : PyObject_IsInstance(next, dispatcher_type);
  if (fits < 0)
    return NULL;
  if (!fits || next == self)
    return PyErr_Format(PyExc_TypeError, "what is followed is another Dispatcher, or None");
  replace(&d->next, next == Py_None ? NULL : next);
  Py_RETURN_NONE;
}

static PyObject *
dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
  allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);   /* zeroed; the arguments are for __init__ */
  PyObject *d = make(type, 0);
  if (d)
    ((Dispatcher *)d)->vectorcall = dispatcher_vectorcall;
  return d;
}

/* What it holds goes in circles: a Kernel's parameters know the Kernel. */
static int
dispatcher_traverse(PyObject *self, visitproc visit, void *arg)
{
  Dispatcher *d = (Dispatcher *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(d->array);
  Py_VISIT(d->device);
  Py_VISIT(d->stream_of);
  Py_VISIT(d->current);
  Py_VISIT(d->grad);
  Py_VISIT(d->next);
  return 0;
}

static int
dispatcher_clear(PyObject *self)
{
  replace(&((Dispatcher *)self)->next, NULL);
  return 0;
}

static void
dispatcher_dealloc(PyObject *self)
{
  Dispatcher *d = (Dispatcher *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  free_params(d->params, d->nparams);
  Py_XDECREF(d->array), Py_XDECREF(d->device), Py_XDECREF(d->ordinal), Py_XDECREF(d->stream_of);
  Py_XDECREF(d->current), Py_XDECREF(d->grad), Py_XDECREF(d->next);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyMethodDef dispatcher_methods[] = {
  {"_prepare", dispatcher_prepare, METH_VARARGS, NULL},
  {"_learn", dispatcher_learn, METH_VARARGS, NULL},
  {"_follow", dispatcher_follow, METH_O, NULL},
  {NULL, NULL, 0, NULL},
};

static PyMemberDef dispatcher_members[] = {
  {"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatcher, vectorcall), READONLY, NULL},
  {NULL, 0, 0, 0, NULL},
};

static PyType_Slot dispatcher_slots[] = {
  {Py_tp_new, dispatcher_new},
  {Py_tp_dealloc, dispatcher_dealloc},
  {Py_tp_traverse, dispatcher_traverse},
  {Py_tp_clear, dispatcher_clear},
  {Py_tp_call, dispatcher_call},
  {Py_mp_subscript, dispatcher_at},
  {Py_tp_members, dispatcher_members},
  {Py_tp_methods, dispatcher_methods},
  {0, NULL},
};

static PyType_Spec dispatcher_spec = {
  .name = "_tilec.Dispatcher", .basicsize = sizeof(Dispatcher),
  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, .slots = dispatcher_slots,
};

static PyMemberDef gridded_members[] = {
  {"__vectorcalloffset__", T_PYSSIZET, offsetof(Gridded, vectorcall), READONLY, NULL},
  {NULL, 0, 0, 0, NULL},
};

static PyType_Slot gridded_slots[] = {
  {Py_tp_dealloc, gridded_dealloc},
  {Py_tp_call, gridded_call},
  {Py_tp_members, gridded_members},
  {0, NULL},
};

static PyType_Spec gridded_spec = {
  .name = "_tilec.Gridded", .basicsize = sizeof(Gridded), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .slots = gridded_slots,
};

int
add_dispatcher(PyObject *module)
{
  for (int i = 0; i < NAMES; i++)
    if (!names[i] && !(names[i] = PyUnicode_InternFromString(spelled[i])))
      return -1;
  if (!gridded_type && !(gridded_type = PyType_FromSpec(&gridded_spec)))
    return -1;
  if (!dispatcher_type && !(dispatcher_type = PyType_FromSpec(&dispatcher_spec)))
    return -1;
  Py_INCREF(dispatcher_type);
  if (!PyModule_AddObject(module, "Dispatcher", dispatcher_type))
    return 0;
  Py_DECREF(dispatcher_type);
  return -1;
}
