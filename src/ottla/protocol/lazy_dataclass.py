"""`@dataclass` like the standard library's, but `__init__` is compiled on its first call.

A process defines 150 of these before its first broker listens, and instantiates few of them by
then. The standard decorator compiles up to seven methods for each class, which took a third of a
start. Here the methods that are the same in every class are closures, and none is compiled.

Not supported: `order`, `unsafe_hash`, `weakref_slot`, and fields of type `InitVar`.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from dataclasses import dataclass as standard_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
Method = Callable[..., Any]


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[type[T]], type[T]]:
    """Like the standard library's; `dataclasses.fields` and `replace` work with it."""

    def decorate(cls: type[T]) -> type[T]:
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # Otherwise the standard decorator computes the signature.
        own = {name for name, value in vars(cls).items() if value is not None}
        made = standard_dataclass(
            init=False,
            repr=False,
            eq=False,
            frozen=_has_frozen_base(cls),
            slots=slots,
            kw_only=kw_only,
        )(cls)
        methods: dict[str, Any] = {"__init__": _init_of(made, frozen), "__repr__": _repr_of(made)}
        if "__init__" not in own:
            methods["__signature__"] = _Signature(made, frozen)
        if eq:
            methods["__eq__"] = _eq_of(made)
            methods["__hash__"] = _hash_of(made) if frozen else None
        for name in methods.keys() - own:
            setattr(made, name, methods[name])
        if frozen:
            _freeze(made, slots)
        return made

    return decorate


def _has_frozen_base(cls: type) -> bool:
    """Whether a base is frozen by the standard decorator, which demands it of subclasses, too."""
    parameters = [getattr(base, "__dataclass_params__", None) for base in cls.__bases__]
    return any(each is not None and each.frozen for each in parameters)


def _init_of(cls: Any, frozen: bool) -> Method:
    def init(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = compiled = _compile_init(cls, frozen)
        compiled(self, *values, **named)

    return init


class _Signature:
    """The parameters of a class before they are compiled, for callers such as Hypothesis."""

    def __init__(self, cls: Any, frozen: bool) -> None:
        self._cls, self._frozen = cls, frozen

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if owner is not self._cls:
            raise AttributeError("__signature__")
        whole = inspect.signature(_compile_init(owner, self._frozen))
        return whole.replace(parameters=[*whole.parameters.values()][1:])


def _compile_init(cls: Any, frozen: bool) -> Method:
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    positional, keywords, lines = ["self"], list[str](), list[str]()
    for each in fields(cls):
        name, default, value = each.name, "", each.name
        if each.default_factory is not MISSING:
            known[f"_make_{name}"] = each.default_factory
            default, value = "=_missing", f"_make_{name}()"
            if each.init:
                value += f" if {name} is _missing else {name}"
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
            default = f"=_default_{name}"
            value = name if each.init else f"_default_{name}"
        elif not each.init:
            continue
        if each.init:
            (keywords if each.kw_only else positional).append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)
    compiled: Method = known["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    compiled.__annotations__ = {each.name: each.type for each in fields(cls) if each.init}
    return compiled


def _values_of(fields_used: Iterable["Field[Any]"]) -> Callable[[Any], Any]:
    names = [each.name for each in fields_used]
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(cls: Any) -> Method:
    values = _values_of(each for each in fields(cls) if each.compare)

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash_of(cls: Any) -> Method:
    values = _values_of(
        each for each in fields(cls) if (each.compare if each.hash is None else each.hash)
    )
    return lambda self: hash(values(self))


def _repr_of(cls: Any) -> Method:
    shown = [each.name for each in fields(cls) if each.repr]

    def describe(self: Any) -> str:
        content = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({content})"

    return describe


def _freeze(cls: Any, slots: bool) -> None:
    """What the standard decorator does for `frozen`; pickling and copying need the last two."""
    names = [each.name for each in fields(cls)]

    def refuse_change(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_removal(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    cls.__setattr__, cls.__delattr__ = refuse_change, refuse_removal
    if slots:
        cls.__getstate__, cls.__setstate__ = state, set_state
