"""Practice of participants: a sitting for each, in memory alone, at addresses that are not those of the study."""

from __future__ import annotations

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.plan import Practice, Terms, aid_config
from calibrant.bench.play.service.address import Address
from calibrant.bench.play.sitting import Sitting


class PracticeRooms:
    """The practice of a study. With feedback and verdicts, whatever the study has: nothing is recorded."""

    def __init__(self, address: Address, terms: Terms, practice: Practice) -> None:
        self._address = address
        self._practice = practice
        self._terms = Terms(f"{terms.title}: practice", feedback="cells", reveal=True, aid=terms.aid)
        config = {"feedback": self._terms.feedback, **aid_config(terms.aid)}
        self._folder = PlayFolder(None, practice.pools, config)

    def token(self, participant: str) -> str:
        """Return the part of the address of a participant's practice; no id has a blank."""
        return self._address.participant_token(f"{participant} practice")

    def open(self, participant: str) -> Sitting:
        """Return a sitting that has begun."""
        sitting = Sitting(self._folder, participant, self._practice.stops, self._terms)
        sitting.begin(agreed=False)
        return sitting

    def warm_up(self) -> None:
        """Load what verdicts need."""
        self._folder.warm_up()
