"""Kernels that only other kernels call, stored as LLVM code without machine code or a Python wrapper.

A kernel contains the code of all functions that it calls. numba nevertheless compiles machine code and a Python wrapper
for every called function. That code never runs and takes about a third of the compile time. With this module a function
is compiled for the kernels that call it, and for Python only when Python calls it.

The module uses numba's internals, as numba's `compile_subroutine` does. `KNOWN` is the range of tested versions. With
other versions numba itself compiles the functions, which only takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
from numba.core import compiler, errors, sigutils, types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import make_concrete_template

from banditlab.numerics.jit_cache import PrivatePlaces, SharedCache

KNOWN = ((0, 64), (0, 68))
"""The first and the last tested version of numba."""


def known() -> bool:
    """Return whether this numba is one of the tested versions."""
    return KNOWN[0] <= numba.version_info[:2] <= KNOWN[1]


class _Code(JITCodeLibrary):
    """A function's LLVM code, which is linked into its callers; it is not compiled to machine code."""

    def _optimize_final_module(self) -> None:
        """Run only numba's fast optimisation passes; the kernel that will contain this code runs all passes."""
        generator = self._codegen
        passes, builder = generator._module_pass_manager(
            loop_vectorize=generator._loopvect, slp_vectorize=False, opt=generator._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Inner:
    """The entry point of a compiled function that Python cannot call."""


class Kernel(CPUDispatcher):
    """numba's dispatcher, which compiles LLVM code for callers in kernels and machine code for callers in Python."""

    _codes: Any = NullCache()
    """The cache of code for kernels."""
    _compiler: Any  # numba's own
    _can_compile: bool
    targetctx: Any
    use_of_arrays = "new"
    """See `jit.njit`."""

    def _reduce_states(self) -> dict[str, Any]:
        states: dict[str, Any] = super()._reduce_states()  # type: ignore[misc]
        return states | {"use_of_arrays": self.use_of_arrays}

    @classmethod
    def _rebuild(cls, *, use_of_arrays: str, **states: Any) -> Any:
        kernel: Any = super()._rebuild(**states)  # type: ignore[misc]
        kernel.use_of_arrays = use_of_arrays
        return kernel

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the function for kernels, and return the types of the call, as numba's own method does."""
        pysig, args = self._compiler.fold_argument_types(args, kws)
        if self._can_compile:
            self._compile_code(tuple(args))
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", key=name, signatures=self.nopython_signatures)
        return template, pysig, args, {}

    def compile(self, sig: Any) -> Any:
        """Return the function compiled for Python instead of the code for kernels."""
        args, _ = sigutils.normalize_signature(sig)
        with global_compiler_lock:
            found: Any = self.overloads.get(tuple(args))
            if found is not None and isinstance(found.entry_point, _Inner):
                # Never released, because machine code refers to its environment by address.
                self.__dict__.setdefault("_replaced", []).append(self.overloads.pop(tuple(args)))
            new = tuple(args) not in self.overloads
            compiled = super().compile(sig)
            if new:
                _set_environments(self.overloads[tuple(args)], self.targetctx)
        return compiled

    def add_overload(self, result: Any) -> None:
        """Add a compiled version after checking its use of arrays."""
        _check_borrowing(self, result)
        super().add_overload(result)

    def _compile_code(self, args: tuple[Any, ...]) -> None:
        """Compile or load the function's code for these types, if it is missing."""
        with global_compiler_lock, self._compiling_counter:  # numba detects a recursion by this counter
            if args in self.overloads:
                return
            result = self._codes.load_overload(args, self.targetctx)
            if result is None:
                try:
                    result = self._compiled_code(args)
                except errors.ForceLiteralArg as error:
                    raise error.bind_fold_arguments(self._folded) from None
                _check_borrowing(self, result)
                self._codes.save_overload(args, result)
            result = result._replace(entry_point=_Inner())
            self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
            self.overloads[args] = result

    def _folded(self, args: Any, kws: Any) -> Any:
        return self._compiler.fold_argument_types(args, kws)[1]

    def _compiled_code(self, args: tuple[Any, ...]) -> Any:
        flags: Any = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return compiler.compile_extra(
            self.typingctx,
            self.targetctx,
            self.py_func,
            args=args,
            return_type=None,
            flags=flags,
            locals=self.locals,
            library=_Code(self.targetctx.codegen(), self.py_func.__qualname__),
            pipeline_class=self._compiler.pipeline_class,
        )


def _check_borrowing(kernel: Kernel, result: Any) -> None:
    """Raise an error if a function with arrays = "used" returns arrays, or calls a function that returns new arrays.

    Its references to arrays are not counted. In such a function numba itself rejects the allocation of an array. Code
    read from disk was checked when it was written.
    """
    if kernel.use_of_arrays != "used" or not result.fndesc.calltypes:
        return
    where = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    if _holds_arrays(result.signature.return_type):
        raise errors.TypingError(f"{where}: returns arrays: set arrays='views' if they are parts of inputs, else 'new'")
    for call, signature in result.fndesc.calltypes.items():
        if getattr(call, "op", None) == "call" and _holds_arrays(signature.return_type):
            called = _called(result.fndesc.typemap[call.func.name], signature.args)
            if getattr(called, "use_of_arrays", "views") == "new":
                name = called.py_func.__qualname__
                raise errors.TypingError(f"{where}: it calls {name}, which may return new arrays: set arrays='new'")


def _holds_arrays(kind: Any) -> bool:
    """Return whether a type is an array type, or a tuple type that contains one."""
    return isinstance(kind, types.Array) or (
        isinstance(kind, types.BaseTuple) and any(_holds_arrays(item) for item in kind.types)  # type: ignore[attr-defined]
    )


def _called(kind: Any, args: Any) -> Any:
    """Return the dispatcher that a call with these argument types uses, or None for another package's function."""
    if isinstance(kind, types.Dispatcher):
        return kind.dispatcher
    choice: Any = getattr(kind, "typing_key", None)  # of `by_context`
    return choice.form_for(args) if hasattr(choice, "form_for") else None


def _set_environments(result: Any, context: Any) -> None:
    """Set the environments of the inner kernels that a kernel contains, as numba does for kernels that it loads."""
    for environment in result._find_referenced_environments():
        context.codegen().set_env(environment.env_name, environment)


class _CodePlaces(PrivatePlaces):
    """Save and load the code of functions that kernels call, as LLVM bitcode, in the folder of their compiled versions."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}.code"

    def reduce(self, result: Any) -> Any:
        described = result.fndesc
        described.typemap = described.calltypes = None  # not used again, and may not be picklable
        bitcode = result.library._get_module_for_linking().as_bitcode()
        environments = tuple(result._find_referenced_environments())
        return (
            result.library.name,
            bitcode,
            described,
            result.environment,
            result.signature,
            result.reload_init,
            environments,
        )

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        name, bitcode, described, environment, signature, reload_init, environments = payload
        for start in reload_init:
            start()
        library = _Code(target_context.codegen(), name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return compiler.compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            library=library,
            environment=environment,
            fndesc=described,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=reload_init,
            referenced_envs=environments,  # never released, because code refers to them by address
        )


class _CodeCache(SharedCache):
    """The cache on disk of one function's code, which kernels call."""

    _impl_class = _CodePlaces


def kernel(dispatcher: Any, function: Callable[..., Any], sources: str, *, cache: bool) -> Any:
    """Convert numba's dispatcher of a function to a `Kernel`, and return it."""
    dispatcher.__class__ = Kernel
    if cache:
        dispatcher._codes = _CodeCache(function, sources)
    return dispatcher
