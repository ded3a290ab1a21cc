"""Ambiguity of ReplaySCM evidence: other SCMs, worlds that separate two, hardened pools."""
