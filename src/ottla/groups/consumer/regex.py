"""Regular expressions of subscriptions, with the syntax and guarantee of RE2: linear time.

A client chooses the expression, so it must not be able to stall the coordinator with it. The
expression becomes an automaton of bounded size, whose steps are cached while names are matched. A
name must match as a whole. Not supported, as in RE2: back references and lookaround assertions.
Also omitted: word boundaries and Unicode classes, which topic names do not need.
"""

from collections.abc import Iterable
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

PATTERN_LENGTH_MAX: Final = 1_000
_STATE_COUNT_MAX: Final = 5_000
_REPEAT_MAX: Final = 1_000
_DEPTH_MAX: Final = 50
_REMEMBERED_MAX: Final = 2_000

_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE: Final = frozenset("\t\n\f\r ")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass(frozen=True, slots=True)
class _Characters:
    members: frozenset[str]
    negated: bool = False

    def has(self, character: str) -> bool:
        return (character in self.members) is not self.negated


@dataclass(frozen=True, slots=True)
class _Anchor:
    at_end: bool


@dataclass(frozen=True, slots=True)
class _Sequence:
    items: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Choice:
    options: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Repeat:
    item: "_Node"
    low: int
    high: int | None


_Node = _Characters | _Anchor | _Sequence | _Choice | _Repeat


class TopicPattern:
    def __init__(self, pattern: str) -> None:
        """Raises ApiError(invalid_regular_expression)."""
        self._automaton = _Automaton(_Parser(pattern).parse())

    def matches(self, name: str) -> bool:
        return self._automaton.matches(name)


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._depth = 0
        self._ignore_case = False
        if len(pattern) > PATTERN_LENGTH_MAX:
            raise self._invalid(f"it is longer than {PATTERN_LENGTH_MAX} characters")

    def parse(self) -> _Node:
        if self._take("(?i)"):
            self._ignore_case = True
        node = self._choice()
        if self._position < len(self._pattern):
            raise self._invalid("unmatched )")
        return node

    def _invalid(self, problem: str) -> ApiError:
        return ApiError(
            ErrorCode.invalid_regular_expression,
            f"the regular expression {self._pattern[:80]!r} cannot be used: {problem}",
        )

    def _peek(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise self._invalid("it ends too early")
        self._position += 1
        return character

    def _take(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._position)
        if found:
            self._position += len(text)
        return found

    def _choice(self) -> _Node:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._invalid("it is nested too deeply")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self) -> _Node:
        items = []
        while self._peek() not in {"", "|", ")"}:
            items.append(self._repeated(self._atom()))
        return _Sequence(tuple(items))

    def _atom(self) -> _Node:
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == ".":
            return _Characters(frozenset("\n"), negated=True)
        if character in "^$":
            return _Anchor(at_end=character == "$")
        if character in "*+?":
            raise self._invalid(f"nothing to repeat before {character}")
        return self._escape() if character == "\\" else self._characters(character)

    def _characters(self, members: Iterable[str], *, negated: bool = False) -> _Characters:
        found = frozenset(members)
        if self._ignore_case:
            found = frozenset(case for each in found for case in (each.lower(), each.upper()))
        return _Characters(found, negated)

    def _group(self) -> _Node:
        if self._take("?"):
            named = self._take("P<") or (self._peek() == "<" and self._take("<"))
            if named:
                self._name()
            elif not self._take(":"):
                raise self._invalid("only (?:...) and named groups are known")
        node = self._choice()
        if not self._take(")"):
            raise self._invalid("missing )")
        return node

    def _name(self) -> None:
        name = ""
        while (character := self._next()) != ">":
            name += character
        if not name or not set(name) <= _WORD:
            raise self._invalid("a group has a bad name")

    def _escape(self) -> _Node:
        character = self._next()
        if character == "A":
            return _Anchor(at_end=False)
        if character == "z":
            return _Anchor(at_end=True)
        return self._escaped_characters(character)

    def _escaped_characters(self, character: str) -> _Characters:
        if character.lower() in _CLASSES:
            return _Characters(_CLASSES[character.lower()], negated=character.isupper())
        if character in _CONTROLS:
            return _Characters(frozenset(_CONTROLS[character]))
        if character in _WORD:
            raise self._invalid(f"\\{character} is not known")
        return self._characters(character)

    def _class(self) -> _Node:
        negated = self._take("^")
        members: set[str] = set()
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._class_item(members)
            if low is not None and self._peek() == "-" and self._ahead() != "]":
                self._next()
                high = self._class_item(set())
                if high is None or high < low:
                    raise self._invalid("a class has a bad range")
                members.update(map(chr, range(ord(low), ord(high) + 1)))
            elif low is not None:
                members.add(low)
        self._next()
        return self._characters(members, negated=negated)

    def _ahead(self) -> str:
        return self._pattern[self._position + 1 : self._position + 2]

    def _class_item(self, members: set[str]) -> str | None:
        """One character, or None for a class, which is added to `members`."""
        character = self._next()
        if character != "\\":
            return character
        escaped = self._escaped_characters(self._next())
        if escaped.negated:
            raise self._invalid("a negated class cannot be inside another class")
        if len(escaped.members) > 1:
            members.update(escaped.members)
            return None
        return next(iter(escaped.members))

    def _repeated(self, node: _Node) -> _Node:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        low: int
        high: int | None
        if self._peek() in simple and self._peek():
            low, high = simple[self._next()]
        elif (counts := self._counts()) is not None:
            low, high = counts
        else:
            return node
        self._take("?")  # Lazy or greedy, the same names match.
        if self._peek() in {"*", "+", "?"} and self._peek():
            raise self._invalid("a repetition is repeated")
        return _Repeat(node, low, high)

    def _counts(self) -> tuple[int, int | None] | None:
        """The bounds in {n}, {n,} or {n,m}; braces around anything else are literal."""
        end = self._pattern.find("}", self._position)
        if self._peek() != "{" or end < 0:
            return None
        low, comma, high = self._pattern[self._position + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self._position = end + 1
        bounds = int(low), (int(high) if high else None) if comma else int(low)
        if max(bounds[0], bounds[1] or 0) > _REPEAT_MAX or bounds[0] > (bounds[1] or _REPEAT_MAX):
            raise self._invalid("a repetition has bad bounds")
        return bounds


class _Automaton:
    """States with transitions on characters, and transitions without one."""

    def __init__(self, node: _Node) -> None:
        self._moves: list[tuple[_Characters, int] | None] = []
        self._free: list[list[int]] = []
        self._at_start: dict[int, int] = {}
        self._at_end: dict[int, int] = {}
        self._final = self._state()
        self._first = self._build(node, self._final)
        self._start = self._reach([self._first], starts=True)
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        states = self._start
        for character in name:
            key = (states, character)
            reached = self._steps.get(key)
            if reached is None:
                reached = self._step(states, character)
                if len(self._steps) >= _REMEMBERED_MAX:
                    self._steps.clear()
                self._steps[key] = reached
            states = reached
            if not states:
                return False
        return self._accepts(states, at_start=not name)

    def _step(self, states: frozenset[int], character: str) -> frozenset[int]:
        reached = []
        for state in states:
            move = self._moves[state]
            if move is not None and move[0].has(character):
                reached.append(move[1])
        return self._reach(reached, starts=False)

    def _accepts(self, states: frozenset[int], *, at_start: bool) -> bool:
        return self._final in self._reach(states, starts=at_start, ends=True)

    def _reach(self, states: Iterable[int], *, starts: bool, ends: bool = False) -> frozenset[int]:
        """These states and all that are reachable without a character."""
        waiting = list(states)
        found = set(waiting)
        while waiting:
            state = waiting.pop()
            onward = list(self._free[state])
            if starts and state in self._at_start:
                onward.append(self._at_start[state])
            if ends and state in self._at_end:
                onward.append(self._at_end[state])
            new = [each for each in onward if each not in found]
            found.update(new)
            waiting.extend(new)
        return frozenset(found)

    def _state(self) -> int:
        if len(self._moves) >= _STATE_COUNT_MAX:
            raise ApiError(
                ErrorCode.invalid_regular_expression, "the regular expression is too large"
            )
        self._moves.append(None)
        self._free.append([])
        return len(self._moves) - 1

    def _build(self, node: _Node, after: int) -> int:
        """The state from which whatever `node` matches leads to `after`."""
        match node:
            case _Characters():
                state = self._state()
                self._moves[state] = (node, after)
                return state
            case _Anchor(at_end):
                state = self._state()
                (self._at_end if at_end else self._at_start)[state] = after
                return state
            case _Sequence(items):
                for item in reversed(items):
                    after = self._build(item, after)
                return after
            case _Choice(options):
                state = self._state()
                self._free[state] = [self._build(option, after) for option in options]
                return state
            case _Repeat():
                return self._build_repeat(node, after)

    def _build_repeat(self, node: _Repeat, after: int) -> int:
        if node.high is None:
            loop = self._state()
            self._free[loop] = [self._build(node.item, loop), after]
            after = loop
        else:
            end = after
            for _ in range(node.high - node.low):
                optional = self._state()
                self._free[optional] = [self._build(node.item, after), end]
                after = optional
        for _ in range(node.low):
            after = self._build(node.item, after)
        return after
