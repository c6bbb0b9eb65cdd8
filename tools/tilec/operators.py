"""Operators of torch from functions that launch kernels: torch.compile, export and autograd see one operator, and look no further.

    softmax = tilec.load("softmax.tile").softmax

    @tilec.operator("mine::softmax")
    def rows(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        softmax[x.shape[0]](x, y, x.shape[0], x.shape[1], x.stride(0))
        return y

    @rows.gradient
    def _(saved, dy):                       # saved.inputs, saved.output: what rows took and gave
        ...
        return dx

While torch traces, tensors are fakes, with a shape and no memory: the function runs as it is, and its launches do nothing. What needs values
(x.item(), a loop until something converges) cannot be traced; `fake=` then gives a function that only says what comes out."""
from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Iterable, Optional, Union

_fakes: dict = {}                                          # by type: whether its tensors have no memory


def is_fake(v: Any) -> bool:
    """Whether a tensor has no memory: one of torch's fakes, or one on the device "meta"."""
    t = type(v)
    if t not in _fakes:
        _fakes[t] = any(c.__module__.startswith("torch._subclasses.") for c in t.__mro__)
    return _fakes[t] or getattr(getattr(v, "device", None), "type", "") == "meta"


class Saved:
    """What a gradient is computed from: .inputs and .output as the function took and gave them, .needed says for each input whether it is wanted."""

    def __init__(self, inputs: tuple, output: Any, needed: tuple) -> None:
        self.inputs, self.output, self.needed = inputs, output, needed


class Operator:
    """A function as an operator of torch: called as the function is; .gradient registers how to go back."""

    def __init__(self, name: str, function: Callable[..., Any], mutates: Iterable[str], fake: Optional[Callable[..., Any]]) -> None:
        import torch
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"operator: a name and a function are needed, got {name!r:.60} and {function!r:.60}")
        if not all(part.isidentifier() for part in name.split("::")) or name.count("::") != 1:
            raise ValueError(f"operator: a name is 'namespace::name', not {name!r}")
        if not hasattr(torch.library, "custom_op"):
            raise ImportError(f"operator {name}: torch {torch.__version__} has no torch.library.custom_op, which comes with 2.4")
        self.name, self.function = name, function
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        mutated = tuple(mutates)

        @functools.wraps(function)
        def run(*args, **named):
            with torch.no_grad():          # torch is below autograd here, but its tensors still say that they require grad
                return function(*args, **named)
        self.op = torch.library.custom_op(name, run, mutates_args=mutated, schema=torch.library.infer_schema(function, mutates_args=mutated))
        self.op.register_fake(fake or run)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.op(*args, **named)

    def __repr__(self) -> str:
        return f"<tilec operator {self.name}>"

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register function(saved, *gradients of the outputs), which gives the gradients of the inputs, None for those without. Where it launches
        kernels itself it should do so in an operator, so that it can be traced, too."""
        import torch

        def keep(ctx, inputs, output):
            outputs = output if isinstance(output, (tuple, list)) else (output,)
            tensors = [v for v in (*inputs, *outputs) if isinstance(v, torch.Tensor)]
            ctx.save_for_backward(*tensors)
            ctx.others = [None if isinstance(v, torch.Tensor) else (v,) for v in (*inputs, *outputs)]
            ctx.counts = len(inputs), isinstance(output, (tuple, list))

        def back(ctx, *gradients):
            tensors = iter(ctx.saved_tensors)
            values = [o[0] if o else next(tensors) for o in ctx.others]
            n, several = ctx.counts
            outputs = values[n:]
            return function(Saved(tuple(values[:n]), tuple(outputs) if several else outputs[0], tuple(ctx.needs_input_grad[:n])), *gradients)
        self.op.register_autograd(back, setup_context=keep)
        return function


def operator(name: str, function: Optional[Callable[..., Any]] = None, *, mutates: Iterable[str] = (),
             fake: Optional[Callable[..., Any]] = None) -> Union[Operator, Callable[[Callable[..., Any]], Operator]]:
    """Make a function that launches kernels an operator of torch, called "namespace::name". Its parameters and what it returns are annotated, as
    torch.library.custom_op asks. mutates names the arguments that it writes to; what it returns must be none of them. Without `function`: a
    decorator."""
    if function is None:
        return lambda f: Operator(name, f, mutates, fake)
    return Operator(name, function, mutates, fake)


def traced(args: Iterable[Any]) -> bool:
    """Whether a launch has nothing to work on, because torch is only tracing."""
    return "torch" in sys.modules and any(is_fake(v) for v in args if hasattr(v, "requires_grad"))
