"""`match` as conditions, so that what a pattern reads of its subject is announced.

| pattern | becomes a test of the value `v` |
|---|---|
| `1`, `Color.RED` | `v == 1`, as anywhere |
| `None` | `v is None` |
| `x`, `p as x` | `(t := v)`; the name itself is bound when the whole pattern fits, as in CPython |
| `p \\| q` | `p or q` |
| `[p, *x, q]` | `(t := __s_match_sequence__(v, 1, 1, True, site))`, and what it holds fits |
| `{k: p, **x}` | `(t := __s_match_mapping__(v, (k,), True, site))`, the same |
| `C(p, a=q)` | `(t := __s_match_class__(v, C, 1, ("a",), site))`, the same |

`case p if g: body` is then one branch of an `if`. The functions, in `matching`, return what the pattern looks into, or
None. What a list or a dict holds is read at once, as by the one instruction of CPython; attributes one by one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable


class Conditions:
    """The patterns of one `match`: each becomes a condition, and names that wait until all of it fits."""

    def __init__(
        self,
        temporary: Callable[[], str],
        visited: Callable[[ast.expr], ast.expr],
        hook: Callable[..., ast.expr],
    ) -> None:
        self._temporary, self._visited, self._hook = temporary, visited, hook
        self.names: list[str] = []
        """Every temporary name: what holds on to a part of the subject."""
        self.captured: dict[str, str] = {}
        """Of each name that the pattern binds, the temporary one that holds its value."""

    def held(self, value: ast.expr, name: str = "") -> tuple[ast.expr, ast.expr]:
        """An expression that evaluates a value and holds on to it; and the value, from then on."""
        if not name:
            name = self._temporary()
            self.names.append(name)
        return ast.NamedExpr(ast.Name(name, ast.Store()), value), ast.Name(name, ast.Load())

    def _capture(self, name: str | None, value: ast.expr) -> list[ast.expr]:
        if name is None:
            return []
        if name not in self.captured:
            self.captured[name] = self._temporary()
            self.names.append(self.captured[name])
        return [_true(self.held(value, self.captured[name])[0])]

    def tests(self, pattern: ast.pattern, value: ast.expr) -> list[ast.expr]:
        """What must all be true, in this order, for `value` to fit."""
        if isinstance(pattern, ast.MatchValue):
            return [
                self._hook(
                    "compare", pattern, ast.Constant("eq"), value, self._visited(pattern.value)
                )
            ]
        if isinstance(pattern, ast.MatchSingleton):
            return [ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)])]
        if isinstance(pattern, ast.MatchAs):
            inner = [] if pattern.pattern is None else self.tests(pattern.pattern, value)
            return [*inner, *self._capture(pattern.name, value)]
        if isinstance(pattern, ast.MatchOr):
            return [ast.BoolOp(ast.Or(), [_all(self.tests(p, value)) for p in pattern.patterns])]
        found, parts = self._taken(pattern, value)
        looked, holder = self.held(found)
        tests: list[ast.expr] = [ast.Compare(looked, [ast.IsNot()], [ast.Constant(None)])]
        for k, part in enumerate(parts):
            item = ast.Subscript(holder, ast.Constant(k), ast.Load())
            if isinstance(part, str):
                tests += self._capture(part, item)
            elif not (isinstance(part, ast.MatchAs) and part.pattern is None):
                keep, kept = self.held(item)
                tests += [_true(keep), *self.tests(part, kept)]
            else:
                tests += self._capture(part.name, item)
        return tests

    def _taken(
        self, pattern: ast.pattern, value: ast.expr
    ) -> tuple[ast.expr, list[ast.pattern | str]]:
        """What takes apart a value, and the patterns, or names, of its parts."""
        if isinstance(pattern, ast.MatchSequence):
            stars = [k for k, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)]
            before = stars[0] if stars else len(pattern.patterns)
            after = len(pattern.patterns) - before - 1 if stars else -1
            parts: list[ast.pattern | str] = []
            star = False
            for part in pattern.patterns:
                if not isinstance(part, ast.MatchStar):
                    parts.append(part)
                elif part.name is not None:
                    star = True
                    parts.append(part.name)
            sizes = map(ast.Constant, (before, after, star))
            return self._hook("match_sequence", pattern, value, *sizes), parts
        if isinstance(pattern, ast.MatchMapping):
            keys = ast.Tuple([self._visited(key) for key in pattern.keys], ast.Load())
            rest = [] if pattern.rest is None else [pattern.rest]
            asked = ast.Constant(bool(rest))
            return self._hook("match_mapping", pattern, value, keys, asked), [
                *pattern.patterns,
                *rest,
            ]
        assert isinstance(pattern, ast.MatchClass)
        named = ast.Tuple([ast.Constant(name) for name in pattern.kwd_attrs], ast.Load())
        count = ast.Constant(len(pattern.patterns))
        called = self._hook("match_class", pattern, value, self._visited(pattern.cls), count, named)
        return called, [*pattern.patterns, *pattern.kwd_patterns]


def _true(value: ast.expr) -> ast.expr:
    """A condition that evaluates `value` and always holds."""
    return ast.Tuple([value], ast.Load())


def _all(tests: list[ast.expr]) -> ast.expr:
    if not tests:
        return ast.Constant(True)
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def condition(tests: list[ast.expr], bindings: list[ast.expr], guard: ast.expr | None) -> ast.expr:
    """That a pattern fits, its names are bound, and its guard holds."""
    return _all([*tests, *map(_true, bindings), *([] if guard is None else [guard])])
