"""The language of CauSim programs: a small part of Python that is parsed and interpreted here and never executed."""
