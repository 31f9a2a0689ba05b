"""What a key looks like, and the hash of it that is kept."""

import re
import secrets
from dataclasses import dataclass, field

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

ID_BYTES = 6
SECRET_BYTES = 20
LONGEST_LIFE = 36_500  # days
KEY = re.compile(rf"wl_([0-9a-f]{{{2 * ID_BYTES}}})_([0-9a-f]{{{2 * SECRET_BYTES}}})")

# The least that OWASP's password cheat sheet recommends: nobody can guess 160 random bits, and a server of 1 GiB
# must bear a verification. One thread, for the others are busy with texts.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@dataclass(frozen=True, slots=True)
class Secret:
    """A key in two parts: an id that may be shown, and the secret, which no repr shows."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The whole key, as its holder sends it."""
        return f"wl_{self.id}_{self.secret}"

    def hash(self) -> str:
        """What is kept of it: salted, different every time."""
        return _hasher.hash(self.secret)

    def matches(self, kept: str) -> bool:
        """Whether the hash `kept` was made from it, in constant time; takes about 50 ms and 19 MiB."""
        try:
            return _hasher.verify(kept, self.secret)
        except VerifyMismatchError:
            return False


def new_secret() -> Secret:
    """A key that nobody had before."""
    return Secret(id=secrets.token_hex(ID_BYTES), secret=secrets.token_hex(SECRET_BYTES))


def read_secret(text: str) -> Secret | None:
    """The key that `text` is, if it has the form of one."""
    found = KEY.fullmatch(text)
    return Secret(*found.groups()) if found else None
