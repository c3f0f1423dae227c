"""Small edits of Python source: every way to make one function a little wrong, as a new text of its file.

An edit is made within one function, so that it can be put into a running process as the new code of that function. Texts
are left alone, and so are assertions, annotations and `strict` of `zip`: they only say what we take for impossible.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

FLIPPED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
OTHER_NAME = {"any": "all", "all": "any", "min": "max", "max": "min"}
OTHER_OPERATOR = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.BitOr: "&", ast.BitAnd: "|"}
PICTURES = {"drawn"}  # other tests know them
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Edit:
    """One edit: other text from byte `begin` to `end` of a file. `function` is the outermost one that holds it."""

    path: str
    function: str
    line: int
    before: str
    after: str
    begin: int
    end: int
    number: int = 0  # among the edits of its function: names may change, and its place in the syntax tree stays

    @property
    def name(self) -> str:
        """The edit without its line, which moves: so it is named in `harmless.toml`."""
        return f"{self.path} {self.function}: {_short(self.before)} -> {_short(self.after)}"

    def made_in(self, source: str) -> str:
        """The whole file with the edit."""
        text = source.encode()
        return (text[: self.begin] + self.after.encode() + text[self.end :]).decode()


def edits_of(path: str, source: str) -> Iterator[Edit]:
    """Every edit of a file, in the order of the file."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = source.encode()

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    for name, function in _functions(ast.parse(source).body):
        for number, (node, after) in enumerate(chain.from_iterable(map(_wrong, _inside(function)))):
            begin, end = place(node)
            yield Edit(path, name, node.lineno, text[begin:end].decode(), after, begin, end, number)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


def _functions(body: Sequence[ast.stmt], within: str = "") -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{within}{node.name}.")
        elif isinstance(node, Function) and node.name not in PICTURES:
            yield within + node.name, node


def _inside(function: Function) -> Iterator[ast.AST]:
    """Every node that may be edited: not the docstring, annotations, assertions and what an error says."""
    waiting: list[ast.AST] = list(reversed(function.body[1:] if ast.get_docstring(function) else function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        yield node
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, Function):
            children = node.body
        elif isinstance(node, ast.AnnAssign):
            children = filter(None, [node.value])
        elif isinstance(node, ast.Raise):
            children = ()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
            children = node.args[1:]
        waiting.extend(reversed(list(children)))


Wrong = Iterator[tuple[ast.expr | ast.stmt, str]]  # what is replaced, and by what


def _wrong(node: ast.AST) -> Wrong:
    """Everything that may stand in place of a node, or of something in it."""
    yield from WRONG.get(type(node), lambda _node: ())(node)


def _bool_op(node: ast.BoolOp) -> Wrong:
    word, other = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
    for left_out in node.values:
        yield node, f"({word.join(_text(value) for value in node.values if value is not left_out)})"
    yield node, f"({other.join(_text(value) for value in node.values)})"


def _compare(node: ast.Compare) -> Wrong:
    if len(node.ops) == 1:
        yield node, f"({_text(node.left)} {FLIPPED[type(node.ops[0])]} {_text(node.comparators[0])})"


def _unary(node: ast.UnaryOp) -> Wrong:
    if isinstance(node.op, ast.Not):
        yield node, _text(node.operand)


def _binary(node: ast.BinOp) -> Wrong:
    if type(node.op) in OTHER_OPERATOR:
        yield node, f"({_text(node.left)} {OTHER_OPERATOR[type(node.op)]} {_text(node.right)})"


def _call(node: ast.Call) -> Wrong:
    if isinstance(node.func, ast.Name) and node.func.id in OTHER_NAME:
        yield node.func, OTHER_NAME[node.func.id]
    for keyword in node.keywords:
        if keyword.arg not in {"strict", "repr", None}:
            others = [one for one in node.keywords if one is not keyword]
            yield node, ast.unparse(ast.Call(node.func, node.args, others))


def _constant(node: ast.Constant) -> Wrong:
    if isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node.value, int):
        yield node, str(node.value + 1)


def _choice(node: ast.IfExp) -> Wrong:
    if any(map(_is_sentence, (node.body, node.orelse))):
        return
    yield node, _text(node.body)
    yield node, _text(node.orelse)
    yield from _test(node)


def _test(node: ast.If | ast.While | ast.IfExp) -> Wrong:
    if not isinstance(node.test, ast.Constant):
        yield node.test, f"(not {_text(node.test)})"


def _comprehension(node: ast.comprehension) -> Wrong:
    for condition in node.ifs:
        yield condition, "True"


def _expression(node: ast.Expr) -> Wrong:
    if not isinstance(node.value, ast.Constant):
        yield node, "pass"


def _assign(node: ast.Assign) -> Wrong:
    if isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield node, "pass"


def _return(node: ast.Return) -> Wrong:
    if node.value is not None and not isinstance(node.value, ast.Constant):  # False, 0 and "" are often as good as None
        yield node, "return None"


def _left_out(node: ast.stmt) -> Wrong:
    yield node, "pass"


def _raise(node: ast.Raise) -> Wrong:
    if not (isinstance(node.exc, ast.Name) and node.exc.id == "NotImplementedError"):  # of what another class says
        yield node, "pass"


WRONG: Mapping[type[ast.AST], Callable[[Any], Wrong]] = {
    ast.BoolOp: _bool_op, ast.Compare: _compare, ast.UnaryOp: _unary, ast.BinOp: _binary, ast.Call: _call,
    ast.Constant: _constant, ast.IfExp: _choice, ast.If: _test, ast.While: _test, ast.comprehension: _comprehension,
    ast.Expr: _expression, ast.Assign: _assign, ast.Return: _return, ast.AugAssign: _left_out, ast.Raise: _raise,
    ast.Continue: _left_out, ast.Break: lambda node: iter([(node, "continue")]),
}  # fmt: skip


def _is_sentence(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    )


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
