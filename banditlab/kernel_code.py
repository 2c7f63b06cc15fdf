"""What numba makes of a kernel: code for Python's calls only where Python calls, machine code only where something runs it.

Most kernels are called by others only, which take them in as LLVM's intermediate code. Numba compiles each as if Python
called it as well: a wrapper that takes a state apart, array by array, and machine code that nothing runs. Both together
are a third of all that there is to compile. The code of what is called is the same with them or without.

Imported by `banditlab.kernels` alone, once numba's folder is set.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

from banditlab.kernel_cache import SharedCache

ENVIRONMENT = "_ZN08NumbaEnv"
"""How the variables begin that lead compiled code to the Python objects it may need; numba sets them by name."""


class InnerLibrary(JITCodeLibrary):
    """Code to be taken in by other libraries: optimised as ever, and no machine code but for its environments."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        code = self._final_module
        kept = [str(v) for v in code.global_variables if v.name.startswith(ENVIRONMENT) and not v.is_declaration]
        if kept:  # else another numba's: emitted whole
            empty = str(self._codegen._create_empty_module(self.name))
            self._final_module = llvm.parse_assembly("\n".join([empty, *kept]))
        super()._finalize_final_module()
        self._final_module = code


class InnerCompiler(Compiler):
    """Numba's compiler, with an `InnerLibrary` for its result."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        library = InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)


class Kernel(CPUDispatcher):
    """A compiled function. Other kernels call its `inner`, unless Python has had it compiled for the same types.

    That may have been now, or in a process that keeps its cache in the same folder: then they share what is there.
    """

    called = False
    """Whether Python calls it anyway: then other kernels need not wait for that."""
    _sources: str | None = None

    def keep(self, sources: str) -> None:
        """Keep what is compiled on disk, in place of what numba's `enable_caching` would set; see `SharedCache`."""
        self._sources, self._cache = sources, SharedCache(self.py_func, sources)

    @cached_property
    def inner(self) -> Any:
        """The same function for other kernels, made when one of them first calls it."""
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        inner: Any = CPUDispatcher(
            self.py_func, locals=self.locals, targetoptions=options, pipeline_class=InnerCompiler
        )
        if self._sources is not None:
            inner._cache = SharedCache(self.py_func, self._sources, "inner-")
        return inner

    @property
    def is_compiling(self) -> Any:
        """Whether it is being compiled, in either form: by this numba knows a function that calls itself."""
        return super().is_compiling or self.inner.is_compiling

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how compiled code calls it, compiled for arguments of these types."""
        folded = tuple(self.fold_argument_types(args, kws)[1])
        inner = not (self.called or folded in self.overloads or self._is_kept(folded))
        return self.inner.get_call_template(args, kws) if inner else super().get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return what `get_call_template` has had compiled."""
        args = tuple(normalize_signature(sig)[0])
        return super().get_overload(sig) if args in self.overloads else self.inner.get_overload(sig)

    def _is_kept(self, types: Any) -> bool:
        return self._sources is not None and self._cache.holds(types, self.targetctx)
