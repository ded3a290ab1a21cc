"""The bundle of a module that is given as text, so that state files can hold it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from calibrant.dsl.causim.bundle import Bundle, Definition, load_source, module_text
from calibrant.dsl.causim.language.driver import DRIVER, SAMPLER, is_text
from calibrant.dsl.causim.language.modules import located_statements
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.prose.reader import same_model
from calibrant.dsl.causim.render import bundle_of, graph_record
from calibrant.dsl.causim.values import ModelError


def bundle_of_source(source: str, model: Model, topology: str = "") -> Bundle:
    """Return a bundle with the texts of a module, whose model is `model`.

    Where taking the module apart would change what it means, the bundle is rendered from the model.
    """
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    imports: list[str] = []
    samplers: list[Definition] = []
    mechanisms: list[Definition] = []
    driver = ""
    for line, node in located_statements(source):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name == DRIVER:
            driver = "\n".join(_lines_of(lines, line, node))
        elif isinstance(node, ast.FunctionDef):
            definition = _definition(lines, line, node)
            (samplers if node.name.startswith(SAMPLER) else mechanisms).append(definition)
    bundle = Bundle(len(model), imports, samplers, mechanisms, driver, graph_record(model), topology)
    try:
        texts = [module_text(bundle, comments=comments) for comments in (False, True)]
        if all(same_model(load_source(text), model) for text in texts):
            return bundle
    except ModelError:
        pass
    return bundle_of(model, topology)


def _lines_of(lines: Sequence[str], first: int, node: ast.FunctionDef) -> Sequence[str]:
    return lines[first - 1 : first + (node.end_lineno or node.lineno) - node.lineno]


def _definition(lines: Sequence[str], line: int, node: ast.FunctionDef) -> Definition:
    text = is_text(node.body[0]) and len(node.body) > 1
    statement = node.body[1 if text else 0]
    if statement.lineno == node.lineno:  # the body stands in the line of the name
        body = "\n".join(map(ast.unparse, node.body[1 if text else 0 :]))
    else:
        first = line + statement.lineno - node.lineno
        end = line + (node.end_lineno or node.lineno) - node.lineno
        body = textwrap.dedent("\n".join(lines[first - 1 : end]))
    doc = ast.get_docstring(node) or "" if text else ""
    return Definition(node.name, [argument.arg for argument in node.args.args], body, doc)
