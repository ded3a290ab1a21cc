"""Claims about fits of tables, and their verifiers: no solver, and no word of the certificate is taken on trust."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audits.claims import ClaimKind, Verifier
from calibrant.audits.replayscm.fits import formulas, networks

VERIFIERS: Mapping[str, Verifier] = {
    "front": ClaimKind(formulas.FrontData, formulas.front_words, formulas.check_front),
    "gap-functions": ClaimKind(formulas.CompletionData, formulas.completion_words, formulas.check_completions),
    "gap-scms": ClaimKind(formulas.ScmCompletionData, formulas.scm_completion_words, formulas.check_scm_completions),
    "scm-front": ClaimKind(formulas.ScmFrontData, formulas.scm_front_words, formulas.check_scm_front),
    "network-optimum": ClaimKind(networks.NetworkOptimumData, networks.optimum_words, networks.check_optimum),
    "network-score": ClaimKind(networks.NetworkScoreData, networks.network_score_words, networks.check_network_score),
    "class-size": ClaimKind(networks.ClassSizeData, networks.class_words, networks.check_class),
}
